-- All quantities in one text, in no order; null without any. A row for each would take three times as long.
select string_agg(quantity_raw, ' ') as quantities_raw
from holders
