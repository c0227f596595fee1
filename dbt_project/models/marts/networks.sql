with

networks as (

    select * from {{ ref('stg_chain__networks') }}

),

network_states as (

    select * from {{ ref('stg_chain__network_states') }}

),

described as (

    select
        networks.network,
        networks.display_name,
        networks.family,
        networks.chain_id,
        networks.is_testnet,
        networks.native_symbol,
        networks.native_decimals,
        case
            when not networks.is_defined then 'Undefined'
            when networks.is_enabled then coalesce(network_states.status, 'NotProbed')
            else 'Disabled'
        end as status,
        case when networks.is_enabled then network_states.detail else networks.disabled_reason end as status_detail,
        network_states.head_number,
        network_states.head_time,
        network_states.final_number,
        list_contains(network_states.capabilities, 'past_balances') as has_archive,
        list_contains(network_states.capabilities, 'traces') as has_traces,
        list_contains(network_states.capabilities, 'input_addresses') as has_input_addresses
    from networks
    left join network_states on networks.network = network_states.network

)

select * from described
order by network
