{{ config(materialized='view') }}

-- Balances and supplies read from the node that the view's tenant may see, from the block before a covered range to its
-- newest block. The models of balances decide whether the tenant may know the pair at all.
with

views as (

    select * from {{ ref('int_covered_ranges') }}

),

observations as (

    select * from {{ ref('stg_chain__balance_observations') }}
    where quantity_raw is not null

),

supply_observations as (

    select * from {{ ref('stg_chain__supply_observations') }}
    where total_supply_raw is not null

),

not_fungible as (

    select
        tenant_id,
        network,
        token_address
    from {{ ref('stg_chain__token_metadata') }}
    where contract_status = 'NotFungible'

),

of_tokens as (

    select
        views.subject_key,
        views.from_block as range_from_block,
        views.network,
        observations.token_address,
        observations.holder_address,
        observations.holder_address as keyed_address,
        observations.block_number,
        observations.quantity_raw,
        observations.purpose,
        observations.batch_id,
        observations.visible_to[views.tenant_id] as visible_since_batch_id
    from observations
    inner join views
        on
            observations.network = views.network
            and observations.token_address = views.address
            and observations.block_number between views.from_block - 1 and views.to_block
    where
        views.kind = 'token'
        and not views.is_not_fungible
        and observations.visible_to[views.tenant_id] is not null

),

of_supplies as (

    select
        views.subject_key,
        views.from_block as range_from_block,
        views.network,
        supply_observations.token_address,
        {{ supply_holder() }} as holder_address,
        {{ supply_holder() }} as keyed_address,
        supply_observations.block_number,
        supply_observations.total_supply_raw as quantity_raw,
        'Check' as purpose,
        supply_observations.batch_id,
        supply_observations.visible_to[views.tenant_id] as visible_since_batch_id
    from supply_observations
    inner join views
        on
            supply_observations.network = views.network
            and supply_observations.token_address = views.address
            and supply_observations.block_number between views.from_block - 1 and views.to_block
    where
        views.kind = 'token'
        and not views.is_not_fungible
        and supply_observations.visible_to[views.tenant_id] is not null

),

of_wallets as (

    select
        views.subject_key,
        views.from_block as range_from_block,
        views.network,
        observations.token_address,
        observations.holder_address,
        observations.token_address as keyed_address,
        observations.block_number,
        observations.quantity_raw,
        observations.purpose,
        observations.batch_id,
        observations.visible_to[views.tenant_id] as visible_since_batch_id
    from observations
    inner join views
        on
            observations.network = views.network
            and observations.holder_address = views.address
            and observations.block_number between views.from_block - 1 and views.to_block
    anti join not_fungible
        on
            views.tenant_id = not_fungible.tenant_id
            and observations.network = not_fungible.network
            and observations.token_address = not_fungible.token_address
    where
        views.kind = 'wallet'
        and observations.visible_to[views.tenant_id] is not null

),

in_view as (

    select * from of_tokens
    union all
    select * from of_supplies
    union all
    select * from of_wallets

)

select * from in_view
