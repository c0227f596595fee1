-- Page of holders sorted by {{ key }}, then rank, in one direction.{{ ' With their earlier quantities.' if before }}
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

select
    paged.rank,
    paged.holder_address,
    paged.quantity_raw,
    marts.percentage(paged.quantity_raw::bignum, $supply_raw::bignum) as percentage,
    paged.reconciliation,
    paged.checked_block_number,
    paged.opened_by,
{%- if before %}
    if(before.rank is null, paged.quantity_raw, before.before_raw) as before_raw
from paged
left join before on paged.rank = before.rank
{%- else %}
    null as before_raw
from paged
{%- endif %}
order by {{ ordering }}
