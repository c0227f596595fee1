-- Where the next rows of a page are: narrow, so that the wide query reads no more blocks than it shows.
select block_number
from marts.{{ kind }}_activities
where
    {% include '_activity_filters.sql' %}
order by $order_sign * block_number
limit $row_count
