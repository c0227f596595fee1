-- Stored outputs whose transactions may be those of some references, by the first bytes of their ids.
select address, transaction_hash, output_index, amount_raw::varchar as amount_raw
from raw.utxo_outputs
where network = $network and output_key in (select output_key from wanted)
union
select address, transaction_hash, output_index, amount_raw::varchar as amount_raw
from raw.utxo_openings
where network = $network and output_key in (select output_key from wanted) and output_index >= 0
