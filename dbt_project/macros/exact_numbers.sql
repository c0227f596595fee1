{#
    Exact arithmetic on BIGNUM, which itself only adds, subtracts and compares exactly: `*`, `/` and `abs` give DOUBLE.

    The functions live in the marts file, so that readers of a published version compute as the models did:
        marts.to_amount(raw, decimals)                raw / 10^decimals
        marts.percentage(part, whole)                 100 * part / whole
        marts.ratio(numerator, denominator, power)    10^power * numerator / denominator
        marts.to_value(raw, decimals, price)          raw / 10^decimals * price
        marts.to_value_units(raw, decimals, price)    the same as BIGNUM of 10^-18, for sums
    All but the last give canonical decimal text (no exponent, no needless zeros); the quotients at most 12 decimals, the
    values at most 18, half to even. Null operands and a zero denominator give null.

    A function of an attached file cannot name another one without naming the file's alias, so bodies are composed here.
#}

{% macro to_amount(raw, decimals) -%}
    {{ in_marts('to_amount') }}({{ raw }}, {{ decimals }})
{%- endmacro %}


{% macro percentage(part, whole) -%}
    {{ in_marts('percentage') }}({{ part }}, {{ whole }})
{%- endmacro %}


{% macro ratio(numerator, denominator, power) -%}
    {{ in_marts('ratio') }}({{ numerator }}, {{ denominator }}, {{ power }})
{%- endmacro %}


{% macro to_value(raw, decimals, price) -%}
    {{ in_marts('to_value') }}({{ raw }}, {{ decimals }}, {{ price }})
{%- endmacro %}


{% macro to_value_units(raw, decimals, price) -%}
    {{ in_marts('to_value_units') }}({{ raw }}, {{ decimals }}, {{ price }})
{%- endmacro %}


{# Text of a sum of `to_value_units`. #}
{% macro units_to_value(units) -%}
    {{ to_amount(units, 18) }}
{%- endmacro %}


{# Computes `value` once and names it in `body`. #}
{% macro let(name, value, body) -%}
    list_transform([{{ value }}], lambda {{ name }}: {{ body }})[1]
{%- endmacro %}


{# Text of the digits of an integer, without its sign. #}
{% macro digits_of(value) -%}
    ltrim(({{ value }})::varchar, '-')
{%- endmacro %}


{# The digits of an integer, at least one more than `decimals`. #}
{% macro padded_digits(raw, decimals) -%}
    lpad({{ digits_of(raw) }}, greatest(length({{ digits_of(raw) }}), {{ decimals }} + 1)::integer, '0')
{%- endmacro %}


{# A shift of digits in text: any size, any sign. `digits`: the padded digits of `raw`. #}
{% macro shifted_text(raw, digits, decimals) -%}
    case when {{ raw }} < 0::bignum then '-' else '' end || {{ point_before(digits, decimals) }}
{%- endmacro %}


{# The same, where the integer is the result of an expression inside another one, which computes nothing once by itself. #}
{% macro shifted_digits(raw, decimals) -%}
    {{ let('digits', padded_digits(raw, decimals), shifted_text(raw, 'digits', decimals)) }}
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


{# Text of a quotient of 10^-12 (an expression: text of digits), given the sign of the result. #}
{% macro signed_text(quotient, is_negative) -%}
    {%- set signed -%}
        case when {{ is_negative }} and quotient != '0' then '-' else '' end || {{ point_before('padded', 12) }}
    {%- endset -%}
    {{ let('quotient', quotient, let('padded', "lpad(quotient, greatest(length(quotient), 13)::integer, '0')", signed)) }}
{%- endmacro %}


{# A text of digits (a name), more than `decimals`, with a point before the last of them, without needless zeros. #}
{% macro point_before(digits, decimals) -%}
    rtrim(
        rtrim(
            left({{ digits }}, (length({{ digits }}) - {{ decimals }})::integer)
            || '.' || right({{ digits }}, {{ decimals }}::integer),
            '0'
        ),
        '.'
    )
{%- endmacro %}


{#
    100 * part / whole. Nearly always the first 23 digits of both (the part's as many places up) decide the 12th decimal: what was cut
    off moves the quotient up by less than 2 * 10^-7, which is less than 10^17 of twice the remainder. A quotient of doubles is at most
    one away, up to 10 times the whole; a division of HUGEINT takes ten times as long. Where it is not decided so, as for halves, long
    division. 100,000 rows: 0.2 s of one core where the leading digits decide; several seconds where they never do.
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
        ({{ let('numerator', "part_digits || repeat('0', 14)", long_quotient('numerator', 'whole_digits')) }})::varchar
    {%- endset -%}
    {%- set estimate -%}
        case
            when dividend::double < 1e15 * divisor::double then (dividend::double / divisor::double)::hugeint
            else dividend // divisor
        end
    {%- endset -%}
    {%- set decided -%}
        case
            when twice > divisor then (estimate + 1)::varchar
            when twice + cut_off < divisor and twice > 0 - divisor then estimate::varchar
            when twice + cut_off < 0 - divisor then (estimate - 1)::varchar
            else {{ long }}
        end
    {%- endset -%}
    {%- set estimated -%}
        {{
            let('cut_off', "case when length(whole_digits) > " ~ kept ~ " then 100000000000000000::hugeint else 0::hugeint end",
            let('dividend', leading_part,
            let('divisor', "left(whole_digits, " ~ kept ~ ")::hugeint + case when cut_off > 0 then 1 else 0 end",
            let('estimate', estimate,
            let('twice', '(dividend - estimate * divisor) * 2', decided)))))
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
                '(' ~ long_quotient('scaled', 'denominator_digits') ~ ')::varchar',
                '(' ~ numerator ~ ' < 0::bignum) != (' ~ denominator ~ ' < 0::bignum)'
            )))
        }}
    end
{%- endmacro %}


{# The limbs of 18 digits of a text of digits, the lowest first. #}
{% macro limbs_of_digits(digits, count) -%}
    {%- set width = 18 * count -%}
    {%- set limbs -%}
        [
            {%- for place in range(count) -%}
            {{ ', ' if place }}substr(padded, {{ width - 18 * place - 17 }}, 18)::hugeint
            {%- endfor -%}
        ]
    {%- endset -%}
    {{ let('padded', "lpad(" ~ digits ~ ", " ~ width ~ ", '0')", limbs) }}
{%- endmacro %}


{#
    Text of the product of two texts of digits, each in the given number of limbs: sums of products of limbs stay below 10^37, are
    shifted as text and added as BIGNUM.
#}
{% macro product_of_limbs(left_digits, left_count, right_digits, right_count) -%}
    {%- set sums -%}
        {% for place in range(left_count + right_count - 1) -%}
        {{ '+ ' if place }}((0::hugeint
            {%- for left in range(left_count) if 0 <= place - left < right_count %}
            + left_limbs[{{ left + 1 }}] * right_limbs[{{ place - left + 1 }}]
            {%- endfor -%}
        )::varchar || '{{ '0' * 18 * place }}')::bignum
        {% endfor -%}
    {%- endset -%}
    ({{
        let('left_limbs', limbs_of_digits(left_digits, left_count),
        let('right_limbs', limbs_of_digits(right_digits, right_count), sums))
    }})::varchar
{%- endmacro %}


{#
    Text of the product of two texts of digits (names) without leading zeros: in one multiplication where 38 digits are enough, else in
    as few limbs as possible. The second has at most 38 digits, as a DECIMAL has.
#}
{% macro product_of_digits(left_digits, right_digits) -%}
    case
        when length({{ left_digits }}) + length({{ right_digits }}) <= 38
            then ({{ left_digits }}::hugeint * {{ right_digits }}::hugeint)::varchar
        when length({{ left_digits }}) <= 36 and length({{ right_digits }}) <= 36
            then {{ product_of_limbs(left_digits, 2, right_digits, 2) }}
        when length({{ left_digits }}) <= 90 then {{ product_of_limbs(left_digits, 5, right_digits, 3) }}
        else error('a quantity of more than 90 digits cannot be valued')
    end
{%- endmacro %}


{# Text of the integer that a text of digits (a name) becomes when `cut` digits are taken off its end, half to even. #}
{% macro rounded_digits(digits, cut) -%}
    {%- set head = "left(padded, (length(padded) - " ~ cut ~ ")::integer)" -%}
    {%- set rest = "right(padded, " ~ cut ~ "::integer)" -%}
    {%- set half = "rpad('5', " ~ cut ~ "::integer, '0')" -%}
    {%- set rounded -%}
        case
            when {{ rest }} < {{ half }} then {{ head }}
            when {{ rest }} = {{ half }} and right({{ head }}, 1)::integer % 2 = 0 then {{ head }}
            else ({{ head }}::bignum + 1::bignum)::varchar
        end
    {%- endset -%}
    {%- set padded -%}
        lpad({{ digits }}, greatest(length({{ digits }}), {{ cut }} + 1)::integer, '0')
    {%- endset -%}
    case
        when {{ cut }} <= 0 then {{ digits }} || repeat('0', 0 - {{ cut }})
        else {{ let('padded', padded, rounded) }}
    end
{%- endmacro %}


{#
    Computes |raw| * price / 10^decimals in units of 10^-18 once and names its digits in `body`. The price's own trailing zeros, which
    most have, are not multiplied. 100,000 rows: 0.6 s of one core, and 1 to 2 s where products exceed 38 digits.
#}
{% macro let_value_digits(raw, decimals, price, body) -%}
    {%- set cut = "(" ~ decimals ~ " - length(price_text) + length(price_trimmed))" -%}
    {%- set product -%}
        {{
            let('price_digits', "ltrim(price_trimmed, '0')",
            let('product', product_of_digits('raw_digits', 'price_digits'),
            rounded_digits('product', cut)))
        }}
    {%- endset -%}
    {%- set digits -%}
        {{
            let('raw_digits', digits_of(raw),
            let('price_text', "replace((" ~ price ~ ")::decimal(38, 18)::varchar, '.', '')",
            let('price_trimmed', "rtrim(price_text, '0')",
            "case when raw_digits = '0' or price_trimmed = '' then '0' else " ~ product ~ " end")))
        }}
    {%- endset -%}
    case
        when {{ raw }} is null or {{ decimals }} is null or {{ price }} is null then null
        else {{ let('value_digits', digits, body) }}
    end
{%- endmacro %}


{% macro value_units_body(raw, decimals, price) -%}
    {%- set units -%}
        (case when {{ raw }} < 0::bignum then '-' else '' end || value_digits)::bignum
    {%- endset -%}
    {{ let_value_digits(raw, decimals, price, units) }}
{%- endmacro %}


{% macro value_body(raw, decimals, price) -%}
    {%- set text -%}
        case when {{ raw }} < 0::bignum and value_digits != '0' then '-' else '' end
        || {{ point_before('padded', 18) }}
    {%- endset -%}
    {%- set padded -%}
        lpad(value_digits, greatest(length(value_digits), 19)::integer, '0')
    {%- endset -%}
    {{ let_value_digits(raw, decimals, price, let('padded', padded, text)) }}
{%- endmacro %}


{# Run before every build, so that the marts file always contains the functions of its models. #}
{% macro create_mart_functions() -%}
    create schema if not exists marts_db.marts;
    create or replace macro marts_db.marts.to_amount(raw, decimals) as
    {{ shifted_text('raw', padded_digits('raw', 'decimals'), 'decimals') }};
    create or replace macro marts_db.marts.percentage(part, whole) as
    {{ percentage_body('part', 'whole') }};
    create or replace macro marts_db.marts.ratio(numerator, denominator, power) as
    {{ ratio_body('numerator', 'denominator', 'power') }};
    create or replace macro marts_db.marts.to_value_units(raw, decimals, price) as
    {{ value_units_body('raw', 'decimals', 'price') }};
    create or replace macro marts_db.marts.to_value(raw, decimals, price) as
    {{ value_body('raw', 'decimals', 'price') }};
    comment on macro marts_db.marts.to_amount is
    'raw / 10^decimals as exact decimal text. Unit: whole tokens.';
    comment on macro marts_db.marts.percentage is
    '100 * part / whole as decimal text, rounded half to even to 12 decimals; null where whole is zero. Unit: percent.';
    comment on macro marts_db.marts.ratio is
    '10^power * numerator / denominator as decimal text, rounded half to even to 12 decimals. Unit: as the operands say.';
    comment on macro marts_db.marts.to_value_units is
    'raw / 10^decimals * price as BIGNUM, rounded half to even, for exact sums. Unit: 10^-18 Priced In.';
    comment on macro marts_db.marts.to_value is
    'raw / 10^decimals * price as decimal text, rounded half to even to 18 decimals. Unit: Priced In.';
{%- endmacro %}
