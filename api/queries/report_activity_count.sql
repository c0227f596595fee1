with {% include '_report_moved.sql' %}

select count(*) as row_count
from marts.wallet_activities
where
    {% include '_report_activity_filters.sql' %}
