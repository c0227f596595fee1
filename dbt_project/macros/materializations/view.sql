{#
    A view in one statement. dbt's own materialization creates it under another name and renames twice, so that readers on other
    databases never miss it; here a transaction holds that anyway, and two dozen views took a second of every cycle.
#}
{% materialization view, adapter='duckdb' -%}
    {%- set target_relation = this.incorporate(type='view') -%}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
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
