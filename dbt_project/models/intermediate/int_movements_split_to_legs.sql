{{ config(materialized='view') }}

-- Signed movements inside views, once per holder with a changed balance. A tracked token has legs of all holders, and
-- of the supply as a holder of its own. A tracked wallet has its own legs in every token, and in the native asset where
-- it was collected. Movements that failed or may have failed are omitted, and so are unknown fees: the next observation
-- books their exact effect.
with

views as (

    select * from {{ ref('int_covered_ranges') }}

),

token_views as (

    select * from views
    where kind = 'token' and not is_not_fungible

),

wallet_views as (

    select
        subject_key,
        tenant_id,
        from_block as range_from_block,
        network,
        address,
        false as is_native,
        from_block,
        to_block
    from views
    where kind = 'wallet'

    union all

    select
        subject_key,
        tenant_id,
        range_from_block,
        network,
        address,
        true as is_native,
        from_block,
        to_block
    from {{ ref('int_native_ranges') }}

),

movements as (

    select * from {{ ref('stg_chain__movements') }}
    where not is_failed

),

sides as (

    select * from {{ ref('stg_chain__movement_sides') }}
    where not is_failed

),

not_fungible as (

    select
        tenant_id,
        network,
        token_address
    from {{ ref('stg_chain__token_metadata') }}
    where contract_status = 'NotFungible'

),

-- One join for both parties and the supply.
token_legs as (

    select
        token_views.subject_key,
        token_views.from_block as range_from_block,
        movements.network,
        movements.block_number,
        movements.asset as token_address,
        case
            when legs.side = 'Out' then movements.from_address
            when legs.side = 'In' then movements.to_address
            when movements.kind in ('Mint', 'Burn') then {{ supply_holder() }}
        end as holder_address,
        holder_address as keyed_address,
        case
            when legs.side = 'Out' or (legs.side = 'Supply' and movements.kind = 'Burn')
                then 0::bignum - movements.amount_raw
            else movements.amount_raw
        end as movement_raw
    from movements
    inner join token_views
        on
            movements.network = token_views.network
            and movements.asset = token_views.address
            and movements.block_number between token_views.from_block and token_views.to_block
    cross join (values ('Out'), ('In'), ('Supply')) as legs (side)

),

wallet_legs as (

    select
        wallet_views.subject_key,
        wallet_views.range_from_block,
        sides.network,
        sides.block_number,
        sides.asset as token_address,
        sides.holder_address,
        sides.asset as keyed_address,
        sides.movement_raw
    from sides
    inner join wallet_views
        on
            sides.network = wallet_views.network
            and sides.holder_address = wallet_views.address
            and (sides.asset = 'native') = wallet_views.is_native
            and sides.block_number between wallet_views.from_block and wallet_views.to_block
    anti join not_fungible
        on
            wallet_views.tenant_id = not_fungible.tenant_id
            and sides.network = not_fungible.network
            and sides.asset = not_fungible.token_address

),

legs as (

    select * from token_legs
    where holder_address is not null
    union all
    select * from wallet_legs

)

select * from legs
