{{ config(alias='address_names') }}

select
    names.tenant_id,
    names.ledger_id,
    names.network,
    coalesce(names.shown_as, shown.display_address, names.address) as address,
    names.name,
    names.wallet_id,
    names.token_id
from {{ beside(ref('address_names')) }} as names
left join {{ beside(ref('addresses')) }} as shown on names.address = shown.address
