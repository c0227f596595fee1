-- Symbol and decimals of every token known by contract, definition or as a native asset. Decimals come from the
-- contract alone.
with

networks as (

    select * from {{ ref('stg_chain__networks') }}

),

common_tokens as (

    select * from {{ ref('stg_chain__common_tokens') }}

),

token_metadata as (

    select * from {{ ref('stg_chain__token_metadata') }}

),

labelled as (

    select
        network,
        'native' as token_address,
        native_symbol as symbol,
        native_decimals as decimals,
        false as is_not_fungible
    from networks

    union all

    select
        coalesce(token_metadata.network, common_tokens.network) as network,
        coalesce(token_metadata.token_address, common_tokens.token_address) as token_address,
        coalesce(token_metadata.symbol, common_tokens.symbol) as symbol,
        token_metadata.decimals,
        coalesce(token_metadata.contract_status = 'NotFungible', false) as is_not_fungible
    from token_metadata
    full outer join common_tokens
        on
            token_metadata.network = common_tokens.network
            and token_metadata.token_address = common_tokens.token_address

)

select * from labelled
