{{ config(materialized='view', contract={'enforced': false}) }}

-- Concentration in integers. x are the quantities from the largest to the smallest, c their running sums, n their
-- number, t their sum, and s is the supply.
--     hhi  = 10^4 * sum(x^2) / s^2
--     gini = (2 * sum(c) - (n + 1) * t) / (n * t), where n * t is t summed over the holders
-- One or many unseen holders have the rest, r = s - t. The share of the largest holders and the sum of squares are
-- highest if one holder has all of r, and lowest if infinitely many share it. A figure is given if both are equal.
-- The gini also depends on how many share r, so it is given only without a rest. Below zero, r bounds nothing. With a
-- supply that no reading confirms, figures are Unconfirmed.
-- No step is read twice, so that a query for one token reads the holders of that token alone.
with

-- Sums are HUGEINT, in a fifth of the time, for a token with absolute quantities that add up to less than 10^38.
sizes as (

    select
        subject_key,
        sum(quantity_raw) as held_raw,
        sum(case when quantity_raw < 0::bignum then 0::bignum - quantity_raw else quantity_raw end)
        < repeat('9', 38)::bignum as is_small
    from {{ beside(ref('token_holders')) }}
    group by subject_key

),

holders as (

    select
        holders.subject_key,
        row_number() over until_rank as rank,
        holders.quantity_raw,
        coalesce(
            (sum(case when sizes.is_small then holders.quantity_raw::varchar::hugeint end) over until_rank)::bignum,
            sum(case when not sizes.is_small then holders.quantity_raw end) over until_rank
        ) as running_raw,
        {{ limbs_of('holders.quantity_raw') }} as limbs,
        sizes.held_raw,
        tokens.total_supply_raw
    from {{ beside(ref('token_holders')) }} as holders
    inner join sizes on holders.subject_key = sizes.subject_key
    inner join {{ beside(ref('tokens')) }} as tokens on holders.subject_key = tokens.subject_key
    window until_rank as (
        partition by holders.subject_key
        order by holders.quantity_raw desc, holders.holder_address asc
        rows unbounded preceding
    )

),

totals as (

    select
        subject_key,
        any_value(held_raw) as held_raw,
        sum(held_raw) as held_times_count_raw,
        sum(quantity_raw) filter (where rank <= 10) as top10_raw,
        coalesce(sum(quantity_raw) filter (where rank <= 9), 0::bignum) as top9_raw,
        sum(running_raw) as running_sum_raw,
        {{ sum_of_squares('limbs') }} as squares_raw,
        min(rank) filter (where running_raw + running_raw > total_supply_raw) as nakamoto,
        -- As nakamoto, if one holder among the first has the rest: the others have less than half together.
        min(rank) filter (
            where held_raw - running_raw + quantity_raw + held_raw - running_raw + quantity_raw < total_supply_raw
        ) as least_nakamoto
    from holders
    group by subject_key

),

joined as (

    select
        tokens.tenant_id,
        tokens.subject_key,
        tokens.total_supply_raw,
        tokens.total_supply,
        tokens.decimals,
        tokens.total_supply_status as supply_status,
        case when tokens.total_supply_raw = 0::bignum then 'ZeroSupply' else tokens.total_supply_status end
            as figure_status,
        tokens.holder_count,
        tokens.opens_without_holders,
        tokens.total_supply_raw - coalesce(totals.held_raw, 0::bignum) as unattributed_raw,
        coalesce(totals.top10_raw, 0::bignum) as top10_raw,
        coalesce(totals.top9_raw, 0::bignum) as top9_raw,
        coalesce(totals.squares_raw, 0::bignum) as squares_raw,
        totals.running_sum_raw + totals.running_sum_raw
        - totals.held_times_count_raw - totals.held_raw as gini_numerator_raw,
        totals.held_times_count_raw as gini_denominator_raw,
        totals.nakamoto,
        totals.least_nakamoto
    from {{ beside(ref('tokens')) }} as tokens
    left join totals on tokens.subject_key = totals.subject_key

),

limbed as (

    select
        *,
        {{ limbs_of('total_supply_raw') }} as supply_limbs,
        {{ limbs_of('unattributed_raw') }} as rest_limbs
    from joined

),

measured as (

    select
        *,
        greatest(top10_raw, top9_raw + unattributed_raw) as most_top10_raw,
        squares_raw + {{ square_of('rest_limbs') }} as most_squares_raw,
        {{ square_of('supply_limbs') }} as squared_raw
    from limbed

),

-- Rounded to their last digit: if infinitely many share the rest, and if one holder has it.
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
            when figure_status != 'Observed' then figure_status
            when unattributed_raw >= 0::bignum and top10_percentage = most_top10_percentage then 'Observed'
            else 'LowerBound'
        end as top10_status,
        case
            when figure_status not in ('Observed', 'Unconfirmed') then figure_status
            when unattributed_raw >= 0::bignum and hhi = most_hhi then figure_status
            else 'HoldersUnknown'
        end as hhi_status,
        case
            when figure_status not in ('Observed', 'Unconfirmed') then figure_status
            when unattributed_raw = 0::bignum then figure_status
            else 'HoldersUnknown'
        end as gini_status,
        case
            when figure_status not in ('Observed', 'Unconfirmed') then figure_status
            when unattributed_raw >= 0::bignum and nakamoto <= coalesce(least_nakamoto, nakamoto) then figure_status
            else 'HoldersUnknown'
        end as nakamoto_status
    from rounded

),

final as (

    select
        tenant_id,
        subject_key,
        total_supply_raw,
        total_supply,
        total_supply::double as total_supply_approx,
        supply_status,
        holder_count,
        case
            when opens_without_holders and unattributed_raw = 0::bignum and supply_status != 'Unconfirmed'
                then 'Complete'
            else 'HoldersUnknown'
        end as holders_status,
        unattributed_raw,
        {{ to_amount('unattributed_raw', 'decimals') }} as unattributed,
        unattributed::double as unattributed_approx,
        {{ percentage('unattributed_raw', 'total_supply_raw') }} as unattributed_percentage,
        unattributed_percentage::double as unattributed_percentage_approx,
        case
            when unattributed_raw < 0::bignum and supply_status != 'Unconfirmed' then 'Negative'
            else supply_status
        end as unattributed_status,
        top10_percentage,
        top10_percentage::double as top10_percentage_approx,
        top10_status,
        case when hhi_status in ('Observed', 'Unconfirmed') then hhi end as hhi,
        case when hhi_status in ('Observed', 'Unconfirmed') then hhi end::double as hhi_approx,
        hhi_status,
        case when gini_status in ('Observed', 'Unconfirmed') then gini end as gini,
        case when gini_status in ('Observed', 'Unconfirmed') then gini end::double as gini_approx,
        gini_status,
        case when nakamoto_status in ('Observed', 'Unconfirmed') then nakamoto end as nakamoto,
        nakamoto_status
    from judged

)

select * from final
