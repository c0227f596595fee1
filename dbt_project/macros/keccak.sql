{#
    Keccak-256 of 40 ASCII characters, which the checksum of EIP-55 needs. DuckDB has no function for it, and its Python functions need
    numpy. One recursive query computes it for all rows at once: 13 us per row on one core; a Python library takes 9.

    The state is 25 columns s0 to s24 of 64 bits, lane (x, y) in column x + 5 * y. Source: https://keccak.team/keccak_specs_summary.html
#}

{# One constant per round; as text, because the larger ones are no BIGINT. #}
{% macro keccak_constants() -%}
    [
        '0x0000000000000001', '0x0000000000008082', '0x800000000000808a', '0x8000000080008000',
        '0x000000000000808b', '0x0000000080000001', '0x8000000080008081', '0x8000000000008009',
        '0x000000000000008a', '0x0000000000000088', '0x0000000080008009', '0x000000008000000a',
        '0x000000008000808b', '0x800000000000008b', '0x8000000000008089', '0x8000000000008003',
        '0x8000000000008002', '0x8000000000000080', '0x000000000000800a', '0x800000008000000a',
        '0x8000000080008081', '0x8000000000008080', '0x0000000080000001', '0x8000000080008008'
    ]::ubigint[]
{%- endmacro %}


{# A lane turned left. DuckDB refuses a shift that loses bits, so they are masked first. #}
{% macro rotated_left(lane, bits) -%}
    {%- if bits == 0 -%}
        {{ lane }}
    {%- else -%}
        ((({{ lane }} & ((1::ubigint << {{ 64 - bits }}) - 1)) << {{ bits }}) | ({{ lane }} >> {{ 64 - bits }}))
    {%- endif -%}
{%- endmacro %}


{# The columns of the state with 40 characters of a text, from a position on, and the padding behind them. #}
{% macro keccak_absorbed(text, position) -%}
    {%- for i in range(25) -%}
        {%- if i < 5 -%}
            ('0x' || hex(reverse(substr({{ text }}, {{ position + 8 * i }}, 8))))::ubigint
        {%- elif i == 5 -%}
            1::ubigint
        {%- elif i == 16 -%}
            1::ubigint << 63
        {%- else -%}
            0::ubigint
        {%- endif %} as s{{ i }}{{ '' if loop.last else ',\n' }}
    {%- endfor -%}
{%- endmacro %}


{#
    The rows of a relation whose states have rounds to come, each after its next round. `key` and `round_number` are the other columns.
    The steps theta, rho with pi, and chi with iota follow each other from the inside out.
#}
{% macro keccak_next(relation, key) -%}
    {%- set rotations = [
        0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14
    ] -%}
    {%- set moved = {} -%}
    {%- for i in range(25) -%}
        {%- do moved.update({i // 5 + 5 * ((2 * (i % 5) + 3 * (i // 5)) % 5): i}) -%}
    {%- endfor -%}
    select
        {{ key }},
        round_number + 1 as round_number,
        {%- for i in range(25) %}
        {%- set x, row = i % 5, i // 5 * 5 %}
        xor(
            b{{ i }},
            {{ 'xor(' if i == 0 }}~b{{ (x + 1) % 5 + row }} & b{{ (x + 2) % 5 + row }}
            {{- ', (' ~ keccak_constants() ~ ')[round_number + 1])' if i == 0 }}
        ) as s{{ i }}{{ '' if loop.last else ',' }}
        {%- endfor %}
    from (
        select
            {{ key }},
            round_number,
            {%- for i in range(25) %}
            {{ rotated_left('t' ~ moved[i], rotations[moved[i]]) }} as b{{ i }}{{ '' if loop.last else ',' }}
            {%- endfor %}
        from (
            select
                {{ key }},
                round_number,
                {%- for i in range(25) %}
                xor(
                    s{{ i }}, xor(c{{ (i + 4) % 5 }}, {{ rotated_left('c' ~ (i + 1) % 5, 1) }})
                ) as t{{ i }}{{ '' if loop.last else ',' }}
                {%- endfor %}
            from (
                select
                    *,
                    {%- for x in range(5) %}
                    xor(
                        s{{ x }}, xor(s{{ x + 5 }}, xor(s{{ x + 10 }}, xor(s{{ x + 15 }}, s{{ x + 20 }})))
                    ) as c{{ x }}{{ '' if loop.last else ',' }}
                    {%- endfor %}
                from {{ relation }}
                where round_number < 24
            ) as columns_added
        ) as theta_done
    ) as lanes_moved
{%- endmacro %}
