{# The columns together name a row: no two rows share them, and none is null. #}
{% test unique_combination(model, columns) %}
select {{ columns | join(', ') }}
from {{ model }}
group by {{ columns | join(', ') }}
having
    count(*) > 1
    {%- for column in columns %}
    or {{ column }} is null
    {%- endfor %}
{% endtest %}
