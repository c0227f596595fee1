-- All quantities in one text, unordered; null if there are none. One row for each would take three times as long.
select string_agg(quantity_raw, ' ') as quantities_raw
from holders
