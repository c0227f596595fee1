-- A token behaves for a wallet as the tenant's own token does; where the tenant has none, as the readings of all its
-- wallets on the network say by the same rule.
with

wallets as (

    select * from {{ ref('stg_control__subjects') }}
    where kind = 'wallet'

),

behaviours as (

    select * from {{ ref('int_behaviours') }}

)

select
    wallets.tenant_id,
    behaviours.subject_key,
    behaviours.token_address,
    behaviours.behaviour
from behaviours
inner join wallets on behaviours.subject_key = wallets.subject_key
