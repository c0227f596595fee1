-- A wallet's token has the behaviour of the tenant's own token. Where the tenant has none, the same rule is applied to
-- the readings of all its wallets on the network.
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
