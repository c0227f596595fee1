{{ config(materialized='view', contract={'enforced': false}) }}

-- A view must find its tables in any copy of the file, so it names them without the database.
-- depends_on: {{ ref('tokens') }}, {{ ref('wallets') }}
with

wallets as (

    select
        tenant_id,
        ledger_id,
        network,
        address,
        wallet_id,
        name,
        shown_as
    from marts.wallets

),

tokens as (

    select
        tenant_id,
        ledger_id,
        network,
        address,
        token_id,
        coalesce(name, symbol) as name
    from marts.tokens

)

select
    coalesce(wallets.tenant_id, tokens.tenant_id) as tenant_id,
    coalesce(wallets.ledger_id, tokens.ledger_id) as ledger_id,
    coalesce(wallets.network, tokens.network) as network,
    coalesce(wallets.address, tokens.address) as address,
    coalesce(wallets.name, tokens.name) as name,
    wallets.wallet_id,
    tokens.token_id,
    wallets.shown_as
from wallets
full join tokens
    on
        wallets.tenant_id = tokens.tenant_id
        and wallets.ledger_id = tokens.ledger_id
        and wallets.address = tokens.address
