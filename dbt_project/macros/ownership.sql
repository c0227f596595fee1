{# The slice of a token's ownership that has a holder: one of the ten largest by name, or all others. #}
{% macro ownership_slice(rank, name, display_address) -%}
    case
        when {{ rank }} <= 10
            then coalesce({{ name }}, left({{ display_address }}, 6) || '…' || right({{ display_address }}, 4))
        else 'Other holders'
    end
{%- endmacro %}
