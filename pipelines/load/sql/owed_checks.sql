-- Pairs that moved, of subjects whose view reaches the head, and those whose readings a reorganisation removed.
with at_head as (
    select * from network_ranges
    where to_block >= $head
),

pairs as (
    select moved_pairs.token_address, moved_pairs.holder_address
    from moved_pairs
    where moved_pairs.subject_key in (select subject_key from at_head)
    union
    select token_address, holder_address
    from raw.lost_readings
    where
        network = $network
        and (
            token_address in (select address from at_head where kind = 'token')
            or holder_address in (select address from at_head where kind = 'wallet')
        )
)

select token_address, holder_address
from pairs;
