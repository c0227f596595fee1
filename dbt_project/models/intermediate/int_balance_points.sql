{{
    config(
        materialized='appended_table',
        meta={'partition_by_address': 'stg_chain__movements'},
        pre_hook=["{{ delete_from_frontier(pair='written.balance_key = touched.balance_key') }}"],
    )
}}

-- Balances after each block with a movement or a reading. The offset of a reading is its difference from the sum of the
-- movements, and holds until the next reading. Before the first reading the offset is 0 where the range begins no later
-- than the contract. Elsewhere it is that of the first reading, unless a balance would open below zero. A balance that
-- continues has its earlier balance as the offset.
-- depends_on: {{ ref('int_frontier') }}, {{ ref('stg_chain__movements') }}, {{ ref('int_movements_split_to_legs') }}
-- depends_on: {{ ref('int_redone_movements') }}
with

addresses as (

    select * from {{ ref('int_addresses') }}

),

subjects as (

    select
        subjects.*,
        case subjects.kind when 'token' then addresses.address_key end as token_key
    from {{ ref('stg_control__subjects') }} as subjects
    left join addresses on subjects.address = addresses.address

),

creations as (

    select
        creations.*,
        addresses.address_key
    from {{ ref('stg_chain__token_creations') }} as creations
    inner join addresses on creations.token_address = addresses.address

),

listed_tokens as ( -- noqa: ST03

    select * from {{ ref('int_wallet_tokens_listed') }}

),

found_holders as ( -- noqa: ST03

    select * from {{ ref('stg_chain__found_holders') }}

),

observations as (

    select * from {{ ref('int_visible_readings') }}

),

touched as (

    select * from {{ ref('int_balances_to_recompute') }}

),

{% if is_incremental_model() -%}
moved as (

    select * from {{ ref('int_redone_movements') }}

),

readings as (

    select observations.*
    from {{ keyed('observations') }} as observations
    inner join touched
        on
            {{ is_same_row('observations', 'touched') }}
            and observations.block_number >= touched.from_block
    where touched.is_known

),

{% else -%}
written_addresses as (

    select addresses.* from addresses
    where {{ is_in_share('addresses') }}

),

moved as (

    {{ moved_in_blocks(keyed(ref('int_movements_split_to_legs'), 'written_addresses')) }}

),

-- A pair is known once it moved, in any range of the view, or its holder was found.
known as (

    select balance_key
    from moved
    union distinct
    select {{ balance_key('found_holders.subject_key', 'addresses.address_key') }} as balance_key
    from found_holders
    inner join addresses on found_holders.holder_address = addresses.address

),

readings as (

    select observations.*
    from {{ keyed('observations', 'written_addresses') }} as observations
    left join known on observations.balance_key = known.balance_key
    left join listed_tokens
        on
            observations.subject_key = listed_tokens.subject_key
            and observations.token_address = listed_tokens.token_address
    where
        known.balance_key is not null
        or listed_tokens.token_address is not null
        or observations.holder_address = {{ supply_holder() }}

),

{% endif -%}
-- Readings of one block agree.
observed as (

    select
        subject_key,
        range_from_block,
        balance_key,
        block_number,
        arg_max(quantity_raw, batch_id) as observed_raw
    from readings
    group by subject_key, range_from_block, balance_key, block_number

),

read_balances as (

    select distinct
        range_from_block,
        balance_key
    from observed

),

-- Balances without a reading need no windows over readings.
unread as (

    select
        moved.*,
        moved.block_number as own_moved_block,
        null as observed_raw,
        sum(moved.movement_raw) over balance as cumulative_raw,
        null as reading,
        null as first_reading,
        null as previous_reading,
        lag(moved.block_number) over balance as previous_moved_block,
        row_number() over balance = 1 as is_first_written
    from moved
    anti join read_balances on {{ is_same_row('moved', 'read_balances') }}
    window balance as (
        partition by moved.range_from_block, moved.balance_key
        order by moved.block_number
        rows unbounded preceding
    )

),

inputs as (

    select
        coalesce(moved.subject_key, observed.subject_key) as subject_key,
        coalesce(moved.range_from_block, observed.range_from_block) as range_from_block,
        coalesce(moved.balance_key, observed.balance_key) as balance_key,
        coalesce(moved.block_number, observed.block_number) as block_number,
        coalesce(moved.movement_raw, 0::bignum) as movement_raw,
        moved.block_number as own_moved_block,
        observed.observed_raw
    from (
        select moved.*
        from moved
        semi join read_balances on {{ is_same_row('moved', 'read_balances') }}
    ) as moved
    full outer join observed
        on
            {{ is_same_row('moved', 'observed') }}
            and moved.block_number = observed.block_number

),

cumulated as (

    select
        *,
        sum(movement_raw) over balance as cumulative_raw
    from inputs
    window balance as (
        partition by range_from_block, balance_key
        order by block_number
        rows unbounded preceding
    )

),

compared as (

    select
        *,
        case
            when observed_raw is not null
                then {
                    'block_number': block_number,
                    'read_raw': observed_raw,
                    'offset_raw': observed_raw - cumulative_raw
                }
        end as reading
    from cumulated

),

spread as (

    select
        *,
        first_value(reading ignore nulls) over whole as first_reading,
        last_value(reading ignore nulls) over before as previous_reading,
        last_value(own_moved_block ignore nulls) over before as previous_moved_block,
        row_number() over before = 1 as is_first_written
    from compared
    window
        whole as (
            partition by range_from_block, balance_key
            order by block_number
            rows between unbounded preceding and unbounded following
        ),
        before as (
            partition by range_from_block, balance_key
            order by block_number
            rows between unbounded preceding and 1 preceding
        )
    union all by name
    select * from unread

),

-- With the known state before the first of the rows.
carried as (

    select
        spread.* exclude (previous_moved_block),
        subjects.network,
        coalesce(touched.is_carried, false) as is_carried,
        touched.balance_raw as carried_raw,
        coalesce(spread.previous_moved_block, touched.moved_block) as previous_moved_block,
        coalesce(
            struct_extract(spread.previous_reading, 'block_number'), touched.checked_block
        ) as previous_checked_block,
        coalesce(struct_extract(spread.previous_reading, 'read_raw'), touched.read_raw) as previous_read_raw,
        case
            when touched.is_carried then touched.opened_by
            when struct_extract(spread.first_reading, 'block_number') = spread.range_from_block - 1 then 'Observed'
            -- If no beginning is known, a token is not older than the first block.
            when
                {{ keyed_address_key('spread') }} != {{ native_key() }}
                and spread.range_from_block <= coalesce(creations.block_number, 1) then 'Creation'
            when spread.first_reading is not null then 'Derived'
        end as opened_by,
        touched.opening_block as carried_opening_block
    from spread
    inner join subjects on spread.subject_key = subjects.subject_key
    left join creations
        on
            subjects.network = creations.network
            and subjects.tenant_id = creations.tenant_id
            and coalesce(subjects.token_key, {{ keyed_address_key('spread') }}) = creations.address_key
    left join touched
        on
            touched.is_carried
            and {{ is_same_row('spread', 'touched') }}

),

opened as (

    select
        *,
        not is_carried and is_first_written as is_first,
        case
            when is_carried then carried_opening_block
            when opened_by = 'Derived' then struct_extract(first_reading, 'block_number')
            when opened_by is not null then range_from_block - 1
        end as opening_block,
        coalesce(
            struct_extract(previous_reading, 'offset_raw'),
            case
                when is_carried then carried_raw
                when opened_by = 'Creation' then 0::bignum
                when opened_by = 'Derived' then greatest(struct_extract(first_reading, 'offset_raw'), 0::bignum)
            end
        ) as previous_offset_raw
    from carried

),

adjusted as (

    select
        *,
        cumulative_raw + coalesce(struct_extract(reading, 'offset_raw'), previous_offset_raw) as balance_raw,
        -- Null when the movements explain the reading, or when it opens the range.
        case
            when struct_extract(reading, 'offset_raw') != previous_offset_raw
                then struct_extract(reading, 'offset_raw') - previous_offset_raw
        end as adjustment_raw
    from opened

),

points as (

    select
        subject_key,
        range_from_block,
        network,
        balance_key,
        block_number,
        own_moved_block is not null as is_moved,
        movement_raw,
        observed_raw,
        opened_by,
        opening_block,
        balance_raw,
        adjustment_raw,
        is_first,
        -- The balance before is this one minus its changes; there is none before the first row.
        (
            (balance_raw != 0::bignum)::tinyint
            - (
                not is_first
                and balance_raw - movement_raw - coalesce(adjustment_raw, 0::bignum) != 0::bignum
            )::tinyint
        )::tinyint as holder_change,
        -- True if there was a balance, and nothing moved since the reading before, or the opening.
        case
            when adjustment_raw is not null
                then
                    balance_raw != adjustment_raw
                    and coalesce(
                        coalesce(own_moved_block, previous_moved_block)
                        <= coalesce(previous_checked_block, range_from_block - 1),
                        true
                    )
        end as is_resting,
        -- True if the balance at the end of the block before is known too, so that it changed in this block.
        case
            when adjustment_raw is not null
                then coalesce(
                    coalesce(previous_checked_block, case when opened_by = 'Creation' then range_from_block - 1 end)
                    = block_number - 1,
                    false
                )
        end as is_located,
        -- True if the movements should have changed the balance, but the reading equals the previous one.
        case
            when adjustment_raw is not null
                then observed_raw = coalesce(previous_read_raw, case when opened_by = 'Creation' then 0::bignum end)
        end as is_ignored,
        -- A reading from which the opening was derived does not check the movements, unless it differs all the same.
        observed_raw is not null
        and (
            opened_by is distinct from 'Derived'
            or block_number != opening_block
            or adjustment_raw is not null
        ) as is_checked,
        {{ transformed_batch() }} as since_batch_id
    from adjusted

)

select * from points
order by subject_key, range_from_block, block_number
