-- Usable files of a network's data sets, grouped by blocks: a data set can have several files for the same blocks.
select
    data_set,
    day,
    from_block,
    to_block,
    count(*) as file_count,
    sum(byte_count)::bigint as byte_count
from marts.data_files
where network = $network and status != 'Refused'
group by data_set, day, from_block, to_block
order by data_set, day, from_block, to_block
