-- Symbol and decimals of every token that a tenant knows by contract, by definition or as a native asset. Decimals come
-- from the contract alone, as it was read for the tenant.
with

tenants as (

    select distinct
        tenant_id,
        network
    from {{ ref('stg_control__subjects') }}

),

networks as (

    select * from {{ ref('stg_chain__networks') }}

),

common_tokens as (

    select
        tenants.tenant_id,
        common_tokens.network,
        common_tokens.token_address,
        common_tokens.symbol
    from {{ ref('stg_chain__common_tokens') }} as common_tokens
    inner join tenants on common_tokens.network = tenants.network

),

token_metadata as (

    select * from {{ ref('stg_chain__token_metadata') }}

),

labelled as (

    select
        tenants.tenant_id,
        networks.network,
        'native' as token_address,
        networks.native_symbol as symbol,
        networks.native_decimals as decimals,
        false as is_not_fungible
    from networks
    inner join tenants on networks.network = tenants.network

    union all

    select
        coalesce(token_metadata.tenant_id, common_tokens.tenant_id) as tenant_id,
        coalesce(token_metadata.network, common_tokens.network) as network,
        coalesce(token_metadata.token_address, common_tokens.token_address) as token_address,
        coalesce(token_metadata.symbol, common_tokens.symbol) as symbol,
        token_metadata.decimals,
        coalesce(token_metadata.contract_status = 'NotFungible', false) as is_not_fungible
    from token_metadata
    full outer join common_tokens
        on
            token_metadata.tenant_id = common_tokens.tenant_id
            and token_metadata.network = common_tokens.network
            and token_metadata.token_address = common_tokens.token_address

)

select * from labelled
