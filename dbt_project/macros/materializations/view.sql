{#
    A view in one statement. dbt's own materialization creates it under another name and renames twice, so that readers on other
    databases never miss it; here a transaction holds that anyway, and two dozen views took a second of every cycle.
#}
{% materialization view, adapter='duckdb' -%}
    {%- set existing_relation = load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='view') -%}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {%- if existing_relation is not none and not existing_relation.is_view -%}
        {% do adapter.drop_relation(existing_relation) %}
    {%- endif -%}
    {% call statement('main') -%}
        create or replace view {{ target_relation }} as (
            {{ sql }}
        )
    {%- endcall %}
    {% do persist_docs(target_relation, model) %}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {% do adapter.commit() %}
    {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


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
