select
    network,
    display_name,
    family,
    chain_id,
    is_testnet,
    native_symbol,
    status,
    status_detail,
    head_number,
    head_time,
    final_number,
    has_archive,
    has_traces,
    has_input_addresses
from marts.networks
order by network
