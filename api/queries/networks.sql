select
    network,
    status,
    status_detail,
    final_number,
    has_archive,
    has_traces
from marts.networks
order by network
