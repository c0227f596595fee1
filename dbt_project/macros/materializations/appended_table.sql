{#
    A table to which each build appends what its query says is new; the model's pre-hooks delete what it writes anew, in the same
    transaction. dbt's own materialization keeps the rows in a temporary table first, to compare its columns with the table's; here
    the contract does that (of the query, before it runs), and a changed project builds everything anew.
#}
{% materialization appended_table, adapter='duckdb' -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% call statement('main') -%}
        {%- if appends() -%}
            {%- if config.get('contract').enforced -%}
                {{ get_assert_columns_equivalent(sql) }}
            {%- endif -%}
            {{ insert_by_name(target_relation, sql) }}
        {%- else -%}
            {%- do drop_unless_table() -%}
            {{ create_or_replace_table(target_relation, sql) }}
        {%- endif -%}
    {%- endcall %}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {% do adapter.commit() %}
    {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


{# Whether the model's table is there and this build appends to it: dbt's is_incremental, which knows dbt's materialization alone. #}
{% macro appends() -%}
    {%- if not execute or model.config.materialized != 'appended_table' or should_full_refresh() -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set relation = load_relation(this) -%}
    {{ return(relation is not none and relation.is_table) }}
{%- endmacro %}
