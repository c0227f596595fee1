-- Blocks of the next rows of a page. This query reads few columns, so that the wide query reads only the page's blocks.
select block_number
from marts.{{ kind }}_activities
where
    {% include '_activity_filters.sql' %}
order by $order_sign * block_number
limit $row_count
