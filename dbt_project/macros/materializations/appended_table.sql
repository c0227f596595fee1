{#
    A table to which each build appends the new rows of its query; the model's pre-hooks delete the rows that are written again, in the
    same transaction. dbt's own materialization first stores the rows in a temporary table, to compare its columns with the table's. Here
    the contract checks the columns (of the query, before it runs), and a changed project rebuilds everything.
#}
{% materialization appended_table, adapter='duckdb' -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {% call statement('main') -%}
        {%- if is_appended() -%}
            {%- if config.get('contract').enforced -%}
                {{ get_assert_columns_equivalent(sql) }}
            {%- endif -%}
            {{ insert_in_parts(target_relation, sql) }}
        {%- else -%}
            {%- do drop_unless_table() -%}
            {{ create_or_replace_table(target_relation, sql) }}
        {%- endif -%}
    {%- endcall %}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {% do adapter.commit() %}
    {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


{# Whether the model's table exists and this build appends to it: dbt's is_incremental only knows dbt's own materialization. #}
{% macro is_appended() -%}
    {%- if not execute or model.config.materialized != 'appended_table' or should_full_refresh() -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set relation = load_relation(this) -%}
    {{ return(relation is not none and relation.is_table) }}
{%- endmacro %}


{#
    The statements that append the rows of a query. If a model is written completely and its meta says so, it is written part by part, so
    that memory does not grow with the history.
#}
{% macro insert_in_parts(relation, query) -%}
    {%- set meta = model.config.meta -%}
    {%- if is_incremental_model() -%}
        {{ insert_by_name(relation, query) }}
    {%- elif meta.get('partition_by_blocks') is not none -%}
        {{ insert_in_stretches(relation, query, ref(meta.get('partition_by_blocks'))) }}
    {%- elif meta.get('partition_by_address') is not none -%}
        {{ insert_in_shares(relation, query, ref(meta.get('partition_by_address'))) }}
    {%- else -%}
        {{ insert_by_name(relation, query) }}
    {%- endif -%}
{%- endmacro %}


{# SQL for the number of rows that each have so many bytes of DuckDB's memory limit. #}
{% macro rows_in_memory(bytes) -%}
    (parse_formatted_bytes(current_setting('memory_limit')) // {{ bytes }})
{%- endmacro %}


{#
    One stretch of blocks after the other, each sorted separately, for a model with a row for each row of `counted`: 2,000,000 activities
    sort in 1 GB. A stretch has at most so many, and 1,000 bytes of DuckDB's memory limit for each. The query must restrict its rows by
    is_in_stretch.
#}
{% macro insert_in_stretches(relation, query, counted) -%}
    {%- set most_rows = 'least(2000000, ' ~ rows_in_memory(1000) ~ ')' -%}
    {%- set ends -%}
        select max(block_number) as to_block
        from (
            select
                block_number,
                sum(count(*)) over (order by block_number) // {{ var('rows_per_stretch', most_rows) }} as stretch
            from {{ counted }}
            group by block_number
        ) as blocks
        group by stretch
        order by to_block
    {%- endset -%}
    {%- for to_block in run_query(ends).columns[0].values()[:-1] %}
        set variable to_block = {{ to_block }};
        {{ insert_by_name(relation, query) }}
        set variable from_block = {{ to_block + 1 }};
    {%- endfor %}
        reset variable to_block;
        {{ insert_by_name(relation, query) }}
        reset variable from_block;
{%- endmacro %}


{#
    One share of all addresses after the other. All balances of a share are computed at once, so DuckDB's memory limit decides how many shares
    there are: 500 bytes for each row of `counted`. 330 bytes were not always enough for 12,500,000 rows. Each share reads all movements. The
    query must restrict its rows by is_in_share.
#}
{% macro insert_in_shares(relation, query, counted) -%}
    {%- set count -%}
        select count(*) // {{ var('rows_per_share', rows_in_memory(500)) }} + 1 as shares from {{ counted }}
    {%- endset -%}
    {%- set shares = run_query(count).columns[0].values()[0] | int %}
        set variable shares = {{ shares }};
    {%- for share in range(shares) %}
        set variable share = {{ share }};
        {{ insert_by_name(relation, query) }}
    {%- endfor %}
        reset variable share;
        reset variable shares;
{%- endmacro %}
