-- Stored blocks that are dated after $latest, before an earlier block, or after a later one. Also all blocks of the
-- tail that are not final: false times may be in order until later blocks contradict them.
with ordered as (
    select
        block_number,
        block_time,
        is_tail,
        max(block_time) filter (where block_time <= $latest) over (
            order by block_number rows between unbounded preceding and 1 preceding
        ) as latest_before,
        min(block_time) over (
            order by block_number rows between 1 following and unbounded following
        ) as earliest_after
    from raw.blocks
    where network = $network
)

select block_number
from ordered
where
    block_time > $latest
    or block_time < latest_before
    or block_time > earliest_after
    or (
        is_tail
        and block_number > (select coalesce(max(final_number), -1) from raw.network_states where network = $network)
    )
order by block_number;
