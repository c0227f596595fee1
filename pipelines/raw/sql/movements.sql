-- Movements of every family: the union of the families' queries. All other queries of movements read this view or one
-- of the views below; `pipelines/tables/chain.py` describes the columns.
create or replace view raw.movements as
$families;

-- Each movement once per party, from that party's side. The constants avoid a second scan.
create or replace view raw.movement_sides as
select * from (
    select
        movements.*,
        direction,
        case direction when 'Out' then from_address else to_address end as holder_address,
        coalesce(case direction when 'Out' then to_address else from_address end, nobody_address) as counterparty_address,
        case direction
            when 'Out' then 0::bignum - coalesce(amount_raw, 0::bignum) - coalesce(fee_raw, 0::bignum)
            else coalesce(amount_raw, 0::bignum)
        end as movement_raw
    from raw.movements
    cross join (values ('Out'), ('In')) as directions (direction)
)
where holder_address is not null;

-- Each side once per subject that may track it: as the token that moved, and as the wallet with the changed balance.
create or replace view raw.movement_parties as
select
    sides.*,
    subject_kind,
    case subject_kind when 'token' then asset else holder_address end as address
from raw.movement_sides as sides
cross join (values ('token'), ('wallet')) as kinds (subject_kind)
where subject_kind = 'wallet' or asset != 'native';
