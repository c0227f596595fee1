{{
    config(
        materialized='appended_table',
        meta={'partition_by_address': 'int_addresses'},
    )
}}

-- The form depends only on the address, so a row is never computed again. Texts that are no address of 20 bytes, such
-- as `native`, have no row.
with recursive

new_addresses as (

    select
        addresses.address_key,
        addresses.address
    from {{ ref('int_addresses') }} as addresses
    where
        regexp_full_match(addresses.address, '0x[0-9a-f]{40}')
        and {{ is_in_share('addresses') }}
        {% if is_appended() -%}
        and addresses.address_key > (select coalesce(max(shown.address_key), -1) from {{ this }} as shown)
        {%- endif %}

),

rounds as (

    select
        address_key,
        address,
        0 as round_number,
        {{ keccak_absorbed('address', 3) }}
    from new_addresses

    union all

    {{ keccak_next('rounds', 'address_key, address') }}

)

-- A letter is upper case where its digit of the hash is 8 or more.
select
    address_key,
    address,
    '0x'
    {%- for i in range(40) %}
    || case
        when ((s{{ i // 16 }} >> {{ 8 * (i % 16 // 2) + (3 if i % 2 else 7) }}) & 1) = 1
            then upper(substr(address, {{ i + 3 }}, 1))
        else substr(address, {{ i + 3 }}, 1)
    end
    {%- endfor %} as display_address
from rounds
where round_number = 24
order by address_key
