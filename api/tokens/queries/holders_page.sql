-- Page of holders sorted by {{ key }}, then rank, in one direction.
{%- if before %} With the change since an earlier moment.{% endif %}
{%- if file %} As a file shows them: the address by `shown`, and the tenant's labels, which lists give.{% endif %}
{%- set ordering = ('' if key == 'rank' else 'paged.' ~ key ~ order ~ ', ') ~ 'paged.rank' ~ order %}
with paged as (

    select *
    from holders as paged
    where
        rank between $first_rank and $last_rank
{%- if key != 'rank' %}
        and ($after_key is null or ({{ key }}, rank) {{ behind }} ($after_key, $after_rank))
{%- endif %}
    order by {{ ordering }}
    limit $row_count offset $skipped

)
{%- if file %},

labels as (

    select
        unnest($labelled_addresses::varchar[]) as address,
        unnest($names::varchar[]) as name,
        unnest($wallet_ids::varchar[]) as wallet_id,
        unnest($holder_types::varchar[]) as holder_type,
        unnest($wallet_tracking_statuses::varchar[]) as wallet_tracking_status

)
{%- endif %}

select
    paged.rank,
    paged.holder_address,
    coalesce(marts.to_amount(paged.quantity_raw::bignum, $decimals::integer), paged.quantity_raw) as quantity,
    paged.quantity_raw,
    marts.percentage(paged.quantity_raw::bignum, $supply_raw::bignum) as percentage,
    marts.to_value(paged.quantity_raw::bignum, $decimals::integer, $price::decimal(38, 18)) as value,
    paged.reconciliation,
    paged.checked_block_number,
    paged.opened_by,
{%- if before %}
    case
        when before.rank is null then '0'
        else coalesce(
            marts.to_amount(paged.quantity_raw::bignum - before.before_raw::bignum, $decimals::integer),
            (paged.quantity_raw::bignum - before.before_raw::bignum)::varchar
        )
    end as change
{%- else %}
    null::varchar as change
{%- endif %}
{%- if file %},
    shown.wallet,
    labels.name,
    labels.wallet_id,
    labels.holder_type,
    labels.wallet_tracking_status
{%- endif %}
from paged
{%- if before %}
left join before on paged.rank = before.rank
{%- endif %}
{%- if file %}
inner join shown on paged.rank = shown.rank
left join labels on paged.holder_address = labels.address
{%- endif %}
order by {{ ordering }}
