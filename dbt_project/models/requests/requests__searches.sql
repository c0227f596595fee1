-- Supplies of tokens without a known holder: cycles search for the holders.
select * from {{ ref('int_unattributed_supplies') }}
