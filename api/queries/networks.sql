select
    network,
    status,
    status_detail,
    head_number,
    head_time,
    final_number,
    has_archive,
    has_traces
from marts.networks
order by network
