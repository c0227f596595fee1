{# A staging view: all columns that the description of a raw table has. #}
{% macro staged(source_name, table) -%}
    {%- set columns = ['*'] -%}
    {%- if execute -%}
        {%- set columns = graph.sources['source.ledgermart.' ~ source_name ~ '.' ~ table].columns -%}
    {%- endif -%}
select {{ columns | join(', ') }} from {{ source(source_name, table) }}
{%- endmacro %}


{# The columns that the description of the model has. #}
{% macro described_columns() -%}
    {{ (model.columns if execute else ['*']) | join(', ') }}
{%- endmacro %}
