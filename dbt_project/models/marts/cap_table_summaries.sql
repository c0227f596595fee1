{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        pre_hook=["{{ delete_changed_subjects() }}"],
    )
}}

-- Concentration in integers. With x the quantities from the largest to the smallest, c their running sums, n their
-- number, t their sum and s the supply:
--     hhi  = 10^4 * sum(x^2) / s^2
--     gini = (2 * sum(c) - (n + 1) * t) / (n * t), where n * t is t summed over the holders
-- What no seen holder has, r = s - t, is held by one or by many. The largest holders have the most, and the squares are
-- the most, where one has all of r; the least where it is spread without end. A figure stands when both give the same.
-- The gini also depends on how many share r, so it stands without a rest alone. Below zero, r bounds nothing.
-- depends_on: {{ ref('int_touched_balances') }}, {{ ref('int_frontier') }}
with

subjects as (

    select subjects.*
    from {{ ref('stg_control__subjects') }} as subjects
    {% if keeps_rows() -%}
    -- Deleted above, or new: whatever is not here.
    anti join {{ this }} as written on subjects.subject_key = written.subject_key
    {% endif -%}
    where subjects.kind = 'token'

),

views as (

    select * from {{ ref('int_covered_ranges') }}
    where is_as_of and not is_not_fungible

),

supplies as (

    select
        balances.subject_key,
        balances.balance_raw as total_supply_raw
    from views
    inner join {{ ref('int_balances_latest') }} as balances
        on
            views.subject_key = balances.subject_key
            and views.from_block = balances.range_from_block
    where balances.holder_address = {{ supply_holder() }}

),

-- Ranges before which nobody held anything: they begin with the token, or its supply was read as zero before them.
openings as (

    select
        views.subject_key,
        views.from_block
    from views
    semi join {{ ref('supply_changes') }} as changes
        on
            views.subject_key = changes.subject_key
            and views.from_block = changes.range_from_block
            and (
                changes.opened_by = 'Creation'
                or (
                    changes.opened_by = 'Observed'
                    and views.from_block - 1 = changes.block_number
                    and changes.total_supply_raw = 0::bignum
                )
            )

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

-- Sums of a token whose quantities are together less than 10^38, whatever their sign, are HUGEINT: a fifth of the time.
sizes as (

    select
        cap_tables.subject_key,
        sum(
            case
                when cap_tables.quantity_raw < 0::bignum then 0::bignum - cap_tables.quantity_raw
                else cap_tables.quantity_raw
            end
        ) < repeat('9', 38)::bignum as is_small
    from {{ ref('cap_tables') }} as cap_tables
    inner join subjects on cap_tables.subject_key = subjects.subject_key
    group by cap_tables.subject_key

),

holders as (

    select
        cap_tables.subject_key,
        cap_tables.rank,
        cap_tables.quantity_raw,
        coalesce(
            (sum(case when sizes.is_small then cap_tables.quantity_raw::varchar::hugeint end) over until_rank)::bignum,
            sum(case when not sizes.is_small then cap_tables.quantity_raw end) over until_rank
        ) as running_raw,
        {{ limbs_of('cap_tables.quantity_raw') }} as limbs,
        supplies.total_supply_raw
    from {{ ref('cap_tables') }} as cap_tables
    inner join sizes on cap_tables.subject_key = sizes.subject_key
    left join supplies on cap_tables.subject_key = supplies.subject_key
    window until_rank as (
        partition by cap_tables.subject_key
        order by cap_tables.rank
        rows unbounded preceding
    )

),

totals as (

    select
        subject_key,
        count(*) as holder_count,
        sum(quantity_raw) as held_raw,
        sum(quantity_raw) filter (where rank <= 10) as top10_raw,
        coalesce(sum(quantity_raw) filter (where rank <= 9), 0::bignum) as top9_raw,
        sum(running_raw) as running_sum_raw,
        {{ sum_of_squares('limbs') }} as squares_raw,
        min(rank) filter (where running_raw + running_raw > total_supply_raw) as nakamoto
    from holders
    group by subject_key

),

multiplied as (

    select
        totals.subject_key,
        sum(totals.held_raw) as held_times_count_raw,
        -- As nakamoto, with the rest in one hand among the first: the others have less than half together.
        min(holders.rank) filter (
            where
            totals.held_raw - holders.running_raw + holders.quantity_raw
            + totals.held_raw - holders.running_raw + holders.quantity_raw < holders.total_supply_raw
        ) as least_nakamoto
    from totals
    inner join holders on totals.subject_key = holders.subject_key
    group by totals.subject_key

),

squared_supplies as (

    select
        subject_key,
        {{ sum_of_squares('limbs') }} as squared_raw
    from (select subject_key, {{ limbs_of('total_supply_raw') }} as limbs from supplies)
    group by subject_key

),

rests as (

    select
        supplies.subject_key,
        supplies.total_supply_raw - coalesce(totals.held_raw, 0::bignum) as unattributed_raw,
        {{ limbs_of('supplies.total_supply_raw - coalesce(totals.held_raw, 0::bignum)') }} as limbs
    from supplies
    left join totals on supplies.subject_key = totals.subject_key

),

squared_rests as (

    select
        subject_key,
        {{ sum_of_squares('limbs') }} as squared_raw
    from rests
    group by subject_key

),

measured as (

    select
        subjects.tenant_id,
        subjects.subject_key,
        supplies.total_supply_raw,
        labels.decimals,
        case
            when supplies.total_supply_raw is null then 'Unknown'
            when supplies.total_supply_raw = 0::bignum then 'ZeroSupply'
            else 'Observed'
        end as supply_status,
        case when views.subject_key is not null then coalesce(totals.holder_count, 0) end as holder_count,
        rests.unattributed_raw,
        views.from_block <= 1 or openings.subject_key is not null as is_from_nothing,
        coalesce(totals.top10_raw, 0::bignum) as top10_raw,
        greatest(
            coalesce(totals.top10_raw, 0::bignum), coalesce(totals.top9_raw, 0::bignum) + rests.unattributed_raw
        ) as most_top10_raw,
        coalesce(totals.squares_raw, 0::bignum) as squares_raw,
        coalesce(totals.squares_raw, 0::bignum) + squared_rests.squared_raw as most_squares_raw,
        squared_supplies.squared_raw,
        totals.running_sum_raw + totals.running_sum_raw
        - multiplied.held_times_count_raw - totals.held_raw as gini_numerator_raw,
        multiplied.held_times_count_raw as gini_denominator_raw,
        totals.nakamoto,
        multiplied.least_nakamoto
    from subjects
    left join views on subjects.subject_key = views.subject_key
    left join supplies on subjects.subject_key = supplies.subject_key
    left join labels
        on
            subjects.network = labels.network
            and subjects.address = labels.token_address
    left join totals on subjects.subject_key = totals.subject_key
    left join multiplied on subjects.subject_key = multiplied.subject_key
    left join squared_supplies on subjects.subject_key = squared_supplies.subject_key
    left join rests on subjects.subject_key = rests.subject_key
    left join squared_rests on subjects.subject_key = squared_rests.subject_key
    left join openings on subjects.subject_key = openings.subject_key

),

-- Rounded to their last digit: with the rest spread without end, and with it in one hand.
rounded as (

    select
        *,
        {{ percentage('top10_raw', 'total_supply_raw') }} as top10_percentage,
        {{ percentage('most_top10_raw', 'total_supply_raw') }} as most_top10_percentage,
        {{ ratio('squares_raw', 'squared_raw', 4) }} as hhi,
        {{ ratio('most_squares_raw', 'squared_raw', 4) }} as most_hhi,
        {{ ratio('gini_numerator_raw', 'gini_denominator_raw', 0) }} as gini
    from measured

),

judged as (

    select
        *,
        case
            when supply_status != 'Observed' then supply_status
            when unattributed_raw >= 0::bignum and top10_percentage = most_top10_percentage then 'Observed'
            else 'LowerBound'
        end as top10_status,
        case
            when supply_status != 'Observed' then supply_status
            when unattributed_raw >= 0::bignum and hhi = most_hhi then 'Observed'
            else 'HoldersUnknown'
        end as hhi_status,
        case
            when supply_status != 'Observed' then supply_status
            when unattributed_raw = 0::bignum then 'Observed'
            else 'HoldersUnknown'
        end as gini_status,
        case
            when supply_status != 'Observed' then supply_status
            when unattributed_raw >= 0::bignum and nakamoto <= coalesce(least_nakamoto, nakamoto) then 'Observed'
            else 'HoldersUnknown'
        end as nakamoto_status
    from rounded

),

final as (

    select
        tenant_id,
        subject_key,
        total_supply_raw,
        {{ to_amount('total_supply_raw', 'decimals') }} as total_supply,
        supply_status,
        holder_count,
        case when is_from_nothing and unattributed_raw = 0::bignum then 'Complete' else 'HoldersUnknown' end
            as holders_status,
        unattributed_raw,
        {{ to_amount('unattributed_raw', 'decimals') }} as unattributed,
        {{ percentage('unattributed_raw', 'total_supply_raw') }} as unattributed_percentage,
        case when unattributed_raw < 0::bignum then 'Negative' else supply_status end as unattributed_status,
        top10_percentage,
        top10_status,
        case when hhi_status = 'Observed' then hhi end as hhi,
        hhi_status,
        case when gini_status = 'Observed' then gini end as gini,
        gini_status,
        case when nakamoto_status = 'Observed' then nakamoto end as nakamoto,
        nakamoto_status
    from judged

)

select * from final
order by subject_key
