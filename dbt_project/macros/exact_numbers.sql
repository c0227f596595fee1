{#
    Exact arithmetic on BIGNUM, which itself only adds, subtracts and compares exactly: `*`, `/` and `abs` give DOUBLE.

    The functions live in the marts file, so that whoever opens a published version computes as the models did:
        marts.to_amount(raw, decimals)                raw / 10^decimals
        marts.percentage(part, whole)                 100 * part / whole
        marts.ratio(numerator, denominator, power)    10^power * numerator / denominator
    All give canonical decimal text (no exponent, no needless zeros); the quotients at most 12 decimals, half to even.
    Null operands and a zero denominator give null.

    A function of an attached file cannot name another one without naming the file's alias, so bodies are composed here.
#}

{% macro to_amount(raw, decimals) -%}
    marts_db.marts.to_amount({{ raw }}, {{ decimals }})
{%- endmacro %}


{% macro percentage(part, whole) -%}
    marts_db.marts.percentage({{ part }}, {{ whole }})
{%- endmacro %}


{% macro ratio(numerator, denominator, power) -%}
    marts_db.marts.ratio({{ numerator }}, {{ denominator }}, {{ power }})
{%- endmacro %}


{# Computes `value` once and names it in `body`. #}
{% macro let(name, value, body) -%}
    list_transform([{{ value }}], lambda {{ name }}: {{ body }})[1]
{%- endmacro %}


{# Text of the digits of an integer, without its sign. #}
{% macro digits_of(value) -%}
    ltrim(({{ value }})::varchar, '-')
{%- endmacro %}


{# A shift of digits in text: any size, any sign. #}
{% macro shifted_digits(raw, decimals) -%}
    {%- set text -%}
        case when {{ raw }} < 0::bignum then '-' else '' end
        || rtrim(
            rtrim(
                left(digits, (length(digits) - {{ decimals }})::integer) || '.' || right(digits, {{ decimals }}::integer),
                '0'
            ),
            '.'
        )
    {%- endset -%}
    {%- set padded -%}
        lpad({{ digits_of(raw) }}, greatest(length({{ digits_of(raw) }}), {{ decimals }} + 1)::integer, '0')
    {%- endset -%}
    case when {{ decimals }} <= 0 then ({{ raw }})::varchar else {{ let('digits', padded, text) }} end
{%- endmacro %}


{#
    Quotient rounded half to even, as BIGNUM, of two texts of digits of any length (names, not expressions), by long division in
    steps of one digit. `state` is
    "<quotient> <remainder>" and starts with one digit fewer than the denominator has; `multiples` is 0, 1, ... 9 denominators.
#}
{% macro long_quotient(numerator, denominator) -%}
    {%- set next_state -%}
        split_part(state, ' ', 1) || (taken - 1)::varchar || ' ' || (dividend - multiples[taken])::varchar
    {%- endset -%}
    {%- set count_taken -%}
        length(list_filter(multiples, lambda multiple: multiple <= dividend))
    {%- endset -%}
    {%- set divided -%}
        list_reduce(
            list_prepend(
                '0 0' || left(padded, length({{ denominator }}) - 1),
                str_split(substr(padded, length({{ denominator }})), '')
            ),
            lambda state, digit:
                {{ let("dividend", "(split_part(state, ' ', 2) || digit)::bignum", let("taken", count_taken, next_state)) }}
        )
    {%- endset -%}
    {%- set rounded -%}
        split_part(last_state, ' ', 1)::bignum
        + case
            when twice > multiples[2] then 1
            when twice < multiples[2] then 0
            else right(split_part(last_state, ' ', 1), 1)::integer % 2
        end::bignum
    {%- endset -%}
    {%- set multiples -%}
        [0::bignum{% for times in range(1, 10) %}, {{ ([denominator ~ '::bignum'] * times) | join(' + ') }}{% endfor %}]
    {%- endset -%}
    {%- set twice -%}
        split_part(last_state, ' ', 2)::bignum + split_part(last_state, ' ', 2)::bignum
    {%- endset -%}
    {%- set padded -%}
        lpad({{ numerator }}, greatest(length({{ numerator }}), length({{ denominator }}))::integer, '0')
    {%- endset -%}
    {{ let('multiples', multiples, let('padded', padded, let('last_state', divided, let('twice', twice, rounded)))) }}
{%- endmacro %}


{# The quotient of two positive integers (texts of digits) as BIGNUM of 10^-12, given the sign of the result. #}
{% macro signed_text(quotient, is_negative) -%}
    {%- set signed -%}
        case when {{ is_negative }} then 0::bignum - quotient else quotient end
    {%- endset -%}
    {{ let('quotient', quotient, let('units', signed, shifted_digits('units', 12))) }}
{%- endmacro %}


{#
    100 * part / whole. Nearly always the first 23 digits of both (the part's as many places up) decide the 12th decimal: what was cut
    off moves the quotient up by less than 2 * 10^-7, which is less than 10^17 of twice the remainder. Where it could matter,
    long division. 100,000 rows: 0.5 s of one core where the leading digits decide; several seconds where they never do.
#}
{% macro percentage_body(part, whole) -%}
    {%- set kept = 23 -%}
    {%- set leading_part -%}
        case
            when length(part_digits) + {{ kept }} <= length(whole_digits) then 0::hugeint
            else left(part_digits, length(part_digits) - greatest(length(whole_digits) - {{ kept }}, 0))::hugeint
        end * 100000000000000
    {%- endset -%}
    {%- set long -%}
        {{ let('numerator', "part_digits || repeat('0', 14)", long_quotient('numerator', 'whole_digits')) }}
    {%- endset -%}
    {%- set decided -%}
        case
            when remainder + remainder > divisor then (whole_part + 1)::varchar::bignum
            when remainder + remainder = divisor and cut_off = 0 then (whole_part + whole_part % 2)::varchar::bignum
            when remainder + remainder + cut_off * 100000000000000000 < divisor then whole_part::varchar::bignum
            else {{ long }}
        end
    {%- endset -%}
    {%- set estimated -%}
        {{
            let('cut_off', "(length(whole_digits) > " ~ kept ~ ")::hugeint",
            let('dividend', leading_part,
            let('divisor', "left(whole_digits, " ~ kept ~ ")::hugeint + cut_off",
            let('whole_part', 'dividend // divisor',
            let('remainder', 'dividend - whole_part * divisor', decided)))))
        }}
    {%- endset -%}
    {%- set quotient -%}
        case when length(part_digits) <= greatest(length(whole_digits), {{ kept }}) then {{ estimated }} else {{ long }} end
    {%- endset -%}
    case
        when {{ part }} is null or {{ whole }} is null or {{ whole }} = 0::bignum then null
        else {{
            let('part_digits', digits_of(part),
            let('whole_digits', digits_of(whole),
            signed_text(quotient, '(' ~ part ~ ' < 0::bignum) != (' ~ whole ~ ' < 0::bignum)')))
        }}
    end
{%- endmacro %}


{% macro ratio_body(numerator, denominator, power) -%}
    case
        when {{ numerator }} is null or {{ denominator }} is null or {{ denominator }} = 0::bignum then null
        else {{
            let('scaled', digits_of(numerator) ~ " || repeat('0', 12 + " ~ power ~ ")",
            let('denominator_digits', digits_of(denominator),
            signed_text(
                long_quotient('scaled', 'denominator_digits'),
                '(' ~ numerator ~ ' < 0::bignum) != (' ~ denominator ~ ' < 0::bignum)'
            )))
        }}
    end
{%- endmacro %}


{# Run before every build, so that the marts file always holds the functions that its models were computed with. #}
{% macro create_mart_functions() -%}
    create schema if not exists marts_db.marts;
    create or replace macro marts_db.marts.to_amount(raw, decimals) as
    {{ shifted_digits('raw', 'decimals') }};
    create or replace macro marts_db.marts.percentage(part, whole) as
    {{ percentage_body('part', 'whole') }};
    create or replace macro marts_db.marts.ratio(numerator, denominator, power) as
    {{ ratio_body('numerator', 'denominator', 'power') }};
{%- endmacro %}


{#
    Sums of squares of integers below 10^90, exact. `limbs_of` cuts a value into six limbs of 15 digits; `sum_of_squares` aggregates such
    a column: products of limbs are summed as HUGEINT (up to 10^7 rows), shifted as text and added as BIGNUM.
#}
{% macro limbs_of(value) -%}
    {{ let('digits', "lpad(" ~ digits_of(value) ~ ", 90, '0')", "[
        substr(digits, 1, 15)::hugeint, substr(digits, 16, 15)::hugeint, substr(digits, 31, 15)::hugeint,
        substr(digits, 46, 15)::hugeint, substr(digits, 61, 15)::hugeint, substr(digits, 76, 15)::hugeint
    ]") }}
{%- endmacro %}


{% macro sum_of_squares(limbs) -%}
    0::bignum
    {%- for first in range(1, 7) -%}
    {%- for second in range(first, 7) %}
    + (
        sum({{ limbs }}[{{ first }}] * {{ limbs }}[{{ second }}] * {{ 1 if first == second else 2 }})::varchar
        || repeat('0', {{ 15 * (12 - first - second) }})
    )::bignum
    {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}
