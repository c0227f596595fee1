{{ config(tags=['audit']) }}

-- Steps with a wrong price: it is later than the step, or too old at the step's last instant. Or the source has no such
-- price, or a newer one during the step.
select
    steps.pair_key,
    steps.valid_from
from {{ ref('system_prices') }} as steps
left join {{ ref('source_prices') }} as said
    on
        steps.pair_key = said.pair_key
        and steps.source_id = said.source_id
        and steps.effective_from = said.effective_from
        and steps.price = said.price
        and said.state in ('Used', 'Accepted')
where
    steps.price_status = 'Priced'
    and (
        said.pair_key is null
        or steps.effective_from > steps.valid_from
        or coalesce(steps.valid_until, 'infinity') > coalesce(said.fresh_until, 'infinity')
        or exists (
            select 1 from {{ ref('source_prices') }} as newer
            where
                newer.pair_key = steps.pair_key
                and newer.source_id = steps.source_id
                and newer.state != 'Rejected'
                and newer.effective_from > steps.effective_from
                and newer.effective_from < coalesce(steps.valid_until, 'infinity')
        )
    )
