{{ config(materialized='view') }}

-- Balances read from the node, as far as they fall into a view: from the state before its first block to its newest
-- collected one. Whether the tenant may know the pair at all is decided where pairs are known.
with

views as (

    select * from {{ ref('int_view_ranges') }}

),

observations as (

    select * from {{ ref('stg_chain__balance_observations') }}
    where quantity_raw is not null

),

not_fungible as (

    select
        network,
        token_address
    from {{ ref('stg_chain__token_metadata') }}
    where contract_status = 'NotFungible'

),

of_tokens as (

    select
        views.subject_key,
        views.window_key,
        observations.*
    from observations
    inner join views
        on
            observations.network = views.network
            and observations.token_address = views.address
            and observations.block_number between views.from_block - 1 and views.covered_to_block
    where
        views.kind = 'token'
        and not views.is_not_fungible
        and observations.holder_address != {{ zero_address() }}

),

of_wallets as (

    select
        views.subject_key,
        views.window_key,
        observations.*
    from observations
    inner join views
        on
            observations.network = views.network
            and observations.holder_address = views.address
            and observations.block_number between views.from_block - 1 and views.covered_to_block
    anti join not_fungible
        on
            observations.network = not_fungible.network
            and observations.token_address = not_fungible.token_address
    where views.kind = 'wallet'

),

in_view as (

    select * from of_tokens
    union all
    select * from of_wallets

)

select * from in_view
