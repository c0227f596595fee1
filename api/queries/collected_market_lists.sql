select source_id
from marts.price_market_lists
where source_id = any($source_ids) and collected_at is not null
