{{ config(materialized='view') }}

-- Every movement inside a view, once per holder whose balance it moves, signed: of a tracked token all holders and, as
-- a holder of its own, the supply; of a tracked wallet itself in every token.
with

views as (

    select * from {{ ref('int_covered_ranges') }}

),

token_views as (

    select * from views
    where kind = 'token' and not is_not_fungible

),

wallet_views as (

    select * from views
    where kind = 'wallet'

),

native_views as (

    select * from {{ ref('int_native_ranges') }}

),

token_transfers as (

    select * from {{ ref('stg_chain__token_transfers') }}

),

transactions as (

    select * from {{ ref('stg_chain__transactions') }}

),

internal_transfers as (

    select * from {{ ref('stg_chain__internal_transfers') }}

),

not_fungible as (

    select
        network,
        token_address
    from {{ ref('stg_chain__token_metadata') }}
    where contract_status = 'NotFungible'

),

token_legs as (

    select
        token_views.subject_key,
        token_views.from_block as range_from_block,
        token_transfers.network,
        token_transfers.block_number,
        token_transfers.token_address,
        token_transfers.from_address as holder_address,
        0::bignum - token_transfers.amount_raw as movement_raw
    from token_transfers
    inner join token_views
        on
            token_transfers.network = token_views.network
            and token_transfers.token_address = token_views.address
            and token_transfers.block_number between token_views.from_block and token_views.to_block
    where token_transfers.from_address != {{ zero_address() }}

    union all

    select
        token_views.subject_key,
        token_views.from_block as range_from_block,
        token_transfers.network,
        token_transfers.block_number,
        token_transfers.token_address,
        token_transfers.to_address as holder_address,
        token_transfers.amount_raw as movement_raw
    from token_transfers
    inner join token_views
        on
            token_transfers.network = token_views.network
            and token_transfers.token_address = token_views.address
            and token_transfers.block_number between token_views.from_block and token_views.to_block
    where token_transfers.to_address != {{ zero_address() }}

),

-- Mints and burns move the supply.
supply_legs as (

    select
        token_views.subject_key,
        token_views.from_block as range_from_block,
        token_transfers.network,
        token_transfers.block_number,
        token_transfers.token_address,
        {{ supply_holder() }} as holder_address,
        case
            when token_transfers.from_address = {{ zero_address() }} then token_transfers.amount_raw
            else 0::bignum - token_transfers.amount_raw
        end as movement_raw
    from token_transfers
    inner join token_views
        on
            token_transfers.network = token_views.network
            and token_transfers.token_address = token_views.address
            and token_transfers.block_number between token_views.from_block and token_views.to_block
    where
        {{ zero_address() }} in (token_transfers.from_address, token_transfers.to_address)
        and token_transfers.from_address != token_transfers.to_address

),

wallet_token_legs as (

    select
        wallet_views.subject_key,
        wallet_views.from_block as range_from_block,
        token_transfers.network,
        token_transfers.block_number,
        token_transfers.token_address,
        wallet_views.address as holder_address,
        0::bignum - token_transfers.amount_raw as movement_raw
    from token_transfers
    inner join wallet_views
        on
            token_transfers.network = wallet_views.network
            and token_transfers.from_address = wallet_views.address
            and token_transfers.block_number between wallet_views.from_block and wallet_views.to_block
    anti join not_fungible
        on
            token_transfers.network = not_fungible.network
            and token_transfers.token_address = not_fungible.token_address

    union all

    select
        wallet_views.subject_key,
        wallet_views.from_block as range_from_block,
        token_transfers.network,
        token_transfers.block_number,
        token_transfers.token_address,
        wallet_views.address as holder_address,
        token_transfers.amount_raw as movement_raw
    from token_transfers
    inner join wallet_views
        on
            token_transfers.network = wallet_views.network
            and token_transfers.to_address = wallet_views.address
            and token_transfers.block_number between wallet_views.from_block and wallet_views.to_block
    anti join not_fungible
        on
            token_transfers.network = not_fungible.network
            and token_transfers.token_address = not_fungible.token_address

),

-- The sender pays the fee of a failed transaction too. Where the receipt does not say whether a transaction succeeded,
-- its value is not booked at all: the next observation shows what it did, exactly.
native_legs as (

    select
        native_views.subject_key,
        native_views.range_from_block,
        transactions.network,
        transactions.block_number,
        'native' as token_address,
        native_views.address as holder_address,
        0::bignum
        - coalesce(transactions.fee_raw, 0::bignum)
        - case when transactions.is_success then transactions.value_raw else 0::bignum end as movement_raw
    from transactions
    inner join native_views
        on
            transactions.network = native_views.network
            and transactions.from_address = native_views.address
            and transactions.block_number between native_views.from_block and native_views.to_block

    union all

    select
        native_views.subject_key,
        native_views.range_from_block,
        transactions.network,
        transactions.block_number,
        'native' as token_address,
        native_views.address as holder_address,
        transactions.value_raw as movement_raw
    from transactions
    inner join native_views
        on
            transactions.network = native_views.network
            and coalesce(transactions.to_address, transactions.created_address) = native_views.address
            and transactions.block_number between native_views.from_block and native_views.to_block
    where transactions.is_success

    union all

    select
        native_views.subject_key,
        native_views.range_from_block,
        internal_transfers.network,
        internal_transfers.block_number,
        'native' as token_address,
        native_views.address as holder_address,
        0::bignum - internal_transfers.amount_raw as movement_raw
    from internal_transfers
    inner join native_views
        on
            internal_transfers.network = native_views.network
            and internal_transfers.from_address = native_views.address
            and internal_transfers.block_number between native_views.from_block and native_views.to_block

    union all

    select
        native_views.subject_key,
        native_views.range_from_block,
        internal_transfers.network,
        internal_transfers.block_number,
        'native' as token_address,
        native_views.address as holder_address,
        internal_transfers.amount_raw as movement_raw
    from internal_transfers
    inner join native_views
        on
            internal_transfers.network = native_views.network
            and internal_transfers.to_address = native_views.address
            and internal_transfers.block_number between native_views.from_block and native_views.to_block

),

legs as (

    select * from token_legs
    union all
    select * from supply_legs
    union all
    select * from wallet_token_legs
    union all
    select * from native_legs

)

select * from legs
