{#
    A view must find tables and functions in any file that holds a copy of it, whatever it is attached as: it names them without the
    file. A unit test computes outside of the file, with rows in place of tables.
#}
{% macro in_marts(name) -%}
    {{ 'marts.' if config.get('materialized') == 'view' else 'marts_db.marts.' }}{{ name }}
{%- endmacro %}


{% macro beside(relation) -%}
    {{ relation.include(database=false) }}
{%- endmacro %}
