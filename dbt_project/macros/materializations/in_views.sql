{#
    A view must find tables and functions in any copy of the file, under any name of the attached database: it names them without the
    database. A unit test runs outside of the file, with rows in place of tables.
#}
{% macro in_marts(name) -%}
    {{ 'marts.' if config.get('materialized') == 'view' else 'marts_db.marts.' }}{{ name }}
{%- endmacro %}


{% macro beside(relation) -%}
    {{ relation.include(database=false) }}
{%- endmacro %}
