-- Bounds of movements that may be new: the batch of the last complete observation, and the first block that a covered
-- range has gained since. A subject with a new range counts from its first block, because pairs that moved in its other
-- ranges are anchored in the new one too.
select
    (select coalesce(max(batch_id), 0) from raw.observed_batches where network = $network) as batch_id,
    (
        select coalesce(min(if(has_new, from_block, opened_to_block + 1)), 9223372036854775807)
        from network_ranges
        where has_new or to_block > opened_to_block
    ) as from_block,
    -- The first block that became final since the last cycle.
    (
        select coalesce(max(final_number), $final) + 1
        from raw.network_states
        where network = $network
    ) as final_from;
