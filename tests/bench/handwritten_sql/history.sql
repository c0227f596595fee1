-- Hand-written SQL of the main marts, with which `python -m tests.bench scale` compares the service's build. The first run
-- computes all blocks, each later one only new blocks. It is limited to the benchmark's warehouse: subjects with one
-- covered range each, begun with their tokens, and no native value. It runs in the file of the results, with the
-- warehouse attached as `warehouse`.

-- Text of integers that are not negative; quotients of integers below 10^31, rounded half to even to 12 decimals.
create or replace macro shifted(digits, decimals) as
    rtrim(
        rtrim(
            left(lpad(digits, greatest(length(digits), decimals + 1)::integer, '0'), -decimals)
            || '.' || right(lpad(digits, greatest(length(digits), decimals + 1)::integer, '0'), decimals),
            '0'
        ),
        '.'
    );

create or replace macro rounded_up(units, rest, whole) as rest + rest > whole or (rest + rest = whole and units % 2 = 1);

create table if not exists blocks (
    network varchar, block_number bigint, block_hash varchar, block_time timestamp, is_tail boolean
);

create table if not exists latest_balances (
    subject_key bigint, token_address varchar, holder_address varchar, balance_raw bignum, moved_block bigint,
    checked_block bigint, is_adjusted boolean
);

create table if not exists balance_changes (
    tenant_id varchar, subject_key bigint, range_from_block bigint, token_address varchar, token_symbol varchar,
    token_decimals integer, holder_address varchar, block_number bigint, block_time timestamp, movement_raw bignum,
    balance_raw bignum, balance varchar, holder_change tinyint, is_first boolean, is_moved boolean, is_observed boolean,
    is_checked boolean, is_adjusted boolean, opened_by varchar
);

create table if not exists supply_changes (
    tenant_id varchar, subject_key bigint, range_from_block bigint, block_number bigint, block_time timestamp,
    total_supply_raw bignum, total_supply varchar, is_moved boolean, is_observed boolean, is_checked boolean,
    is_adjusted boolean, opened_by varchar
);

create table if not exists token_activities (
    tenant_id varchar, subject_key bigint, token_id varchar, activity_id varchar, activity_type varchar,
    status varchar, block_number bigint, block_hash varchar, block_time timestamp, transaction_index integer,
    log_index integer, transaction_hash varchar, from_address varchar, to_address varchar, amount_raw bignum,
    amount varchar, is_located boolean, amount_approx double
);

create table if not exists wallet_activities (
    tenant_id varchar, subject_key bigint, wallet_id varchar, activity_id varchar, activity_type varchar,
    direction varchar, status varchar, block_number bigint, block_hash varchar, block_time timestamp,
    transaction_index integer, log_index integer, trace_index integer, transaction_hash varchar,
    counterparty_address varchar, token_address varchar, token_id varchar, token_symbol varchar, amount_raw bignum,
    amount varchar, is_located boolean, amount_status varchar, fee_raw bignum, fee varchar, fee_status varchar,
    counterparties varchar[], counterparty_count integer, counterparty_status varchar, detail varchar,
    amount_approx double
);

-- 0: all blocks are new.
set variable first_block = (select coalesce(max(block_number) + 1, 0) from blocks);


create or replace table views as
select
    subjects.subject_key, subjects.subject_id, subjects.kind, subjects.tenant_id, subjects.network, subjects.address,
    covered.from_block, covered.to_block, states.final_number
from warehouse.raw.covered_ranges as covered
inner join warehouse.raw.control_subjects as subjects on covered.subject_key = subjects.subject_key
inner join warehouse.raw.network_states as states on subjects.network = states.network;

create or replace table tokens as
select metadata.network, metadata.token_address, metadata.symbol, metadata.decimals, subjects.subject_id as token_id
from warehouse.raw.token_metadata as metadata
inner join warehouse.raw.control_subjects as subjects
    on metadata.network = subjects.network and metadata.token_address = subjects.address and subjects.kind = 'token';

insert into blocks
select network, block_number, block_hash, block_time, coalesce(is_tail, false) as is_tail
from warehouse.raw.blocks
where block_number >= getvariable('first_block');

create temp view new_transfers as
select * from warehouse.raw.token_transfers where block_number >= getvariable('first_block');


-- Movements by view, holder and block.
create temp table movements as
with legs as (
    select
        views.subject_key, transfers.token_address, transfers.from_address as holder_address, transfers.block_number,
        0::bignum - transfers.amount_raw as movement_raw
    from new_transfers as transfers
    inner join views
        on transfers.token_address = views.address and transfers.block_number between views.from_block and views.to_block
    where views.kind = 'token' and transfers.from_address != '0x0000000000000000000000000000000000000000'
    union all
    select
        views.subject_key, transfers.token_address, transfers.to_address, transfers.block_number, transfers.amount_raw
    from new_transfers as transfers
    inner join views
        on transfers.token_address = views.address and transfers.block_number between views.from_block and views.to_block
    where views.kind = 'token' and transfers.to_address != '0x0000000000000000000000000000000000000000'
    union all
    select
        views.subject_key, transfers.token_address, views.address, transfers.block_number, 0::bignum - transfers.amount_raw
    from new_transfers as transfers
    inner join views
        on transfers.from_address = views.address and transfers.block_number between views.from_block and views.to_block
    where views.kind = 'wallet'
    union all
    select views.subject_key, transfers.token_address, views.address, transfers.block_number, transfers.amount_raw
    from new_transfers as transfers
    inner join views
        on transfers.to_address = views.address and transfers.block_number between views.from_block and views.to_block
    where views.kind = 'wallet'
)

select subject_key, token_address, holder_address, block_number, sum(movement_raw) as movement_raw
from legs
group by subject_key, token_address, holder_address, block_number;

-- Readings of pairs with movements, with their difference to the balance known before.
create temp table readings as
with new_readings as (
    select
        views.subject_key, readings.token_address, readings.holder_address, readings.block_number,
        readings.quantity_raw as observed_raw, views.from_block
    from warehouse.raw.balance_observations as readings
    inner join views
        on
            if(views.kind = 'token', readings.token_address, readings.holder_address) = views.address
            and readings.block_number between views.from_block and views.to_block
    where readings.block_number >= getvariable('first_block')
),

-- Movements since the newest known balance, or since the beginning.
compared as (
    select
        new_readings.subject_key, new_readings.token_address, new_readings.holder_address, new_readings.block_number,
        any_value(new_readings.from_block) as from_block, any_value(new_readings.observed_raw) as observed_raw,
        any_value(latest.checked_block) as checked_block,
        any_value(new_readings.observed_raw) - coalesce(any_value(latest.balance_raw), 0::bignum)
        - coalesce(sum(movements.movement_raw), 0::bignum) as offset_raw
    from new_readings
    left join latest_balances as latest using (subject_key, token_address, holder_address)
    left join movements
        on
            new_readings.subject_key = movements.subject_key
            and new_readings.token_address = movements.token_address
            and new_readings.holder_address = movements.holder_address
            and new_readings.block_number >= movements.block_number
    where latest.subject_key is not null or movements.subject_key is not null
    group by
        new_readings.subject_key, new_readings.token_address, new_readings.holder_address, new_readings.block_number
)

select
    subject_key, token_address, holder_address, block_number, observed_raw,
    offset_raw - lag(offset_raw, 1, 0::bignum) over pair as adjustment_raw,
    coalesce(lag(block_number) over pair, checked_block, from_block - 1) = block_number - 1 as is_located
from compared
window pair as (partition by subject_key, token_address, holder_address order by block_number);

insert into balance_changes by name
with points as (
    select
        coalesce(movements.subject_key, readings.subject_key) as subject_key,
        coalesce(movements.token_address, readings.token_address) as token_address,
        coalesce(movements.holder_address, readings.holder_address) as holder_address,
        coalesce(movements.block_number, readings.block_number) as block_number,
        coalesce(movements.movement_raw, 0::bignum) as movement_raw,
        movements.subject_key is not null as is_moved,
        readings.observed_raw is not null as is_observed,
        coalesce(readings.adjustment_raw, 0::bignum) as adjustment_raw
    from movements
    full outer join readings
        on
            movements.subject_key = readings.subject_key
            and movements.token_address = readings.token_address
            and movements.holder_address = readings.holder_address
            and movements.block_number = readings.block_number
),

balances as (
    select
        points.*,
        coalesce(latest.balance_raw, 0::bignum) + sum(points.movement_raw + points.adjustment_raw) over pair as balance_raw,
        latest.subject_key is null and row_number() over pair = 1 as is_first
    from points
    left join latest_balances as latest
        on
            points.subject_key = latest.subject_key
            and points.token_address = latest.token_address
            and points.holder_address = latest.holder_address
    window pair as (
        partition by points.subject_key, points.token_address, points.holder_address
        order by points.block_number rows unbounded preceding
    )
)

select
    views.tenant_id, balances.subject_key, views.from_block as range_from_block, balances.token_address,
    tokens.symbol as token_symbol, tokens.decimals as token_decimals, balances.holder_address, balances.block_number,
    blocks.block_time, balances.movement_raw, balances.balance_raw, shifted(balances.balance_raw::varchar, tokens.decimals) as balance,
    (
        (balances.balance_raw != 0::bignum)::tinyint
        - (
            not balances.is_first
            and balances.balance_raw - balances.movement_raw - balances.adjustment_raw != 0::bignum
        )::tinyint
    )::tinyint as holder_change,
    balances.is_first, balances.is_moved, balances.is_observed, balances.is_observed as is_checked,
    balances.adjustment_raw != 0::bignum as is_adjusted, 'Creation' as opened_by
from balances
inner join views on balances.subject_key = views.subject_key
inner join blocks on views.network = blocks.network and balances.block_number = blocks.block_number
inner join tokens on views.network = tokens.network and balances.token_address = tokens.token_address
order by balances.subject_key, range_from_block, balances.block_number;

merge into latest_balances as latest
using (
    select
        subject_key, token_address, holder_address,
        arg_max(balance_raw, block_number) as balance_raw,
        max(block_number) filter (where is_moved) as moved_block,
        max(block_number) filter (where is_observed) as checked_block,
        bool_or(is_adjusted) as is_adjusted
    from balance_changes
    where block_number >= getvariable('first_block')
    group by subject_key, token_address, holder_address
) as touched
    on
        latest.subject_key = touched.subject_key
        and latest.token_address = touched.token_address
        and latest.holder_address = touched.holder_address
when matched then update set
    balance_raw = touched.balance_raw,
    moved_block = coalesce(touched.moved_block, latest.moved_block),
    checked_block = coalesce(touched.checked_block, latest.checked_block),
    is_adjusted = latest.is_adjusted or touched.is_adjusted
when not matched then insert;

insert into supply_changes by name
with movements as (
    select
        views.subject_key, transfers.block_number,
        sum(
            if(
                transfers.from_address = '0x0000000000000000000000000000000000000000',
                transfers.amount_raw, 0::bignum - transfers.amount_raw
            )
        ) as movement_raw,
        true as is_moved,
        false as is_observed
    from new_transfers as transfers
    inner join views
        on transfers.token_address = views.address and transfers.block_number between views.from_block and views.to_block
    where
        views.kind = 'token'
        and '0x0000000000000000000000000000000000000000' in (transfers.from_address, transfers.to_address)
        and transfers.from_address != transfers.to_address
    group by views.subject_key, transfers.block_number
    union all
    -- They agree with the movements.
    select views.subject_key, readings.block_number, 0::bignum, false, true
    from warehouse.raw.supply_observations as readings
    inner join views on readings.token_address = views.address and views.kind = 'token'
    where readings.block_number >= getvariable('first_block')
),

points as (
    select
        subject_key, block_number, sum(movement_raw) as movement_raw, bool_or(is_moved) as is_moved,
        bool_or(is_observed) as is_observed
    from movements
    group by subject_key, block_number
),

known as (
    select subject_key, arg_max(total_supply_raw, block_number) as total_supply_raw from supply_changes group by subject_key
),

supplies as (
    select
        points.*,
        coalesce(known.total_supply_raw, 0::bignum)
        + sum(points.movement_raw) over (partition by points.subject_key order by points.block_number) as total_supply_raw
    from points
    left join known on points.subject_key = known.subject_key
)

select
    views.tenant_id, supplies.subject_key, views.from_block as range_from_block, supplies.block_number, blocks.block_time,
    supplies.total_supply_raw, shifted(supplies.total_supply_raw::varchar, tokens.decimals) as total_supply,
    supplies.is_moved, supplies.is_observed, supplies.is_observed as is_checked, false as is_adjusted,
    'Creation' as opened_by
from supplies
inner join views on supplies.subject_key = views.subject_key
inner join blocks on views.network = blocks.network and supplies.block_number = blocks.block_number
inner join tokens on views.network = tokens.network and views.address = tokens.token_address
order by supplies.subject_key, range_from_block, supplies.block_number;

update token_activities set status = 'Finalized'
where status = 'Confirmed' and block_number <= (select max(final_number) from views);

insert into token_activities by name
with activities as (
    select
        views.subject_key,
        case
            when
                transfers.from_address = '0x0000000000000000000000000000000000000000'
                and transfers.to_address != transfers.from_address then 'Mint'
            when
                transfers.to_address = '0x0000000000000000000000000000000000000000'
                and transfers.to_address != transfers.from_address then 'Burn'
            else 'Transfer'
        end as activity_type,
        transfers.block_number, transfers.transaction_index, transfers.log_index, transfers.transaction_hash,
        transfers.from_address, transfers.to_address, transfers.amount_raw, null::boolean as is_located,
        '' as holder_address
    from new_transfers as transfers
    inner join views
        on transfers.token_address = views.address and transfers.block_number between views.from_block and views.to_block
    where views.kind = 'token'
    union all
    select
        readings.subject_key, 'Adjustment', readings.block_number, -1, -1, null,
        if(readings.adjustment_raw < 0::bignum, readings.holder_address, null),
        if(readings.adjustment_raw > 0::bignum, readings.holder_address, null),
        greatest(readings.adjustment_raw, 0::bignum - readings.adjustment_raw), readings.is_located,
        readings.holder_address
    from readings
    inner join views on readings.subject_key = views.subject_key
    where views.kind = 'token' and readings.adjustment_raw != 0::bignum
),

described as (
    select
        views.tenant_id, activities.subject_key, views.subject_id as token_id,
        'act_' || md5(
            concat_ws(
                '|', views.network, blocks.block_hash, activities.activity_type, activities.transaction_index,
                activities.log_index, views.subject_id, views.address, activities.holder_address
            )
        ) as activity_id,
        activities.activity_type,
        if(activities.block_number <= views.final_number, 'Finalized', 'Confirmed') as status,
        activities.block_number, blocks.block_hash, blocks.block_time, activities.transaction_index, activities.log_index,
        activities.transaction_hash, activities.from_address, activities.to_address, activities.amount_raw,
        shifted(activities.amount_raw::varchar, tokens.decimals) as amount, activities.is_located
    from activities
    inner join views on activities.subject_key = views.subject_key
    inner join blocks on views.network = blocks.network and activities.block_number = blocks.block_number
    inner join tokens on views.network = tokens.network and views.address = tokens.token_address
)

select *, amount::double as amount_approx
from described
order by subject_key, block_number, transaction_index, log_index;

update wallet_activities set status = 'Finalized'
where status = 'Confirmed' and block_number <= (select max(final_number) from views);

insert into wallet_activities by name
with activities as (
    select
        views.subject_key,
        case
            when transfers.to_address = transfers.from_address then 'Self'
            when transfers.to_address = '0x0000000000000000000000000000000000000000' then 'Burn'
            else 'TransferOut'
        end as activity_type,
        if(transfers.to_address = transfers.from_address, null, 'Out') as direction,
        transfers.block_number, transfers.transaction_index, transfers.log_index, transfers.transaction_hash,
        transfers.to_address as counterparty_address, transfers.token_address, transfers.amount_raw,
        null::boolean as is_located
    from new_transfers as transfers
    inner join views
        on transfers.from_address = views.address and transfers.block_number between views.from_block and views.to_block
    where views.kind = 'wallet'
    union all
    select
        views.subject_key,
        if(transfers.from_address = '0x0000000000000000000000000000000000000000', 'Mint', 'TransferIn'), 'In',
        transfers.block_number, transfers.transaction_index, transfers.log_index, transfers.transaction_hash,
        transfers.from_address, transfers.token_address, transfers.amount_raw, null
    from new_transfers as transfers
    inner join views
        on transfers.to_address = views.address and transfers.block_number between views.from_block and views.to_block
    where views.kind = 'wallet' and transfers.from_address != transfers.to_address
    union all
    select
        readings.subject_key, 'Adjustment', if(readings.adjustment_raw < 0::bignum, 'Out', 'In'), readings.block_number,
        -1, -1, null, null, readings.token_address,
        greatest(readings.adjustment_raw, 0::bignum - readings.adjustment_raw), readings.is_located
    from readings
    inner join views on readings.subject_key = views.subject_key
    where views.kind = 'wallet' and readings.adjustment_raw != 0::bignum
),

described as (
    select
        views.tenant_id, activities.subject_key, views.subject_id as wallet_id,
        'act_' || md5(
            concat_ws(
                '|', views.network, blocks.block_hash, activities.activity_type, activities.transaction_index,
                activities.log_index, views.subject_id, activities.token_address
            )
        ) as activity_id,
        activities.activity_type, activities.direction,
        if(activities.block_number <= views.final_number, 'Finalized', 'Confirmed') as status,
        activities.block_number, blocks.block_hash, blocks.block_time, activities.transaction_index, activities.log_index,
        null::integer as trace_index, activities.transaction_hash, activities.counterparty_address,
        activities.token_address, tokens.token_id, tokens.symbol as token_symbol, activities.amount_raw,
        shifted(activities.amount_raw::varchar, tokens.decimals) as amount, activities.is_located,
        'Known' as amount_status, null::bignum as fee_raw, null::varchar as fee, 'Separate' as fee_status,
        null::varchar[] as counterparties,
        (activities.counterparty_address is not null)::integer as counterparty_count,
        if(activities.counterparty_address is null, 'None', 'Known') as counterparty_status, null::varchar as detail
    from activities
    inner join views on activities.subject_key = views.subject_key
    inner join blocks on views.network = blocks.network and activities.block_number = blocks.block_number
    inner join tokens on views.network = tokens.network and activities.token_address = tokens.token_address
)

select *, amount::double as amount_approx
from described
order by subject_key, block_number, transaction_index, log_index;
