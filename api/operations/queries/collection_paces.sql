select
    work,
    requests_per_million,
    answer_bytes_per_million,
    milliseconds_per_million
from marts.collection_paces
where network = $network
order by work
