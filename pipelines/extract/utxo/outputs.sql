-- Stored outputs that the references may name: the first bytes of their transactions' ids are equal.
select coalesce(paid_address, address) as address, transaction_hash, output_index, amount_raw::varchar as amount_raw
from raw.utxo_outputs
where network = $network and output_key in (select output_key from wanted)
union
select coalesce(paid_address, address) as address, transaction_hash, output_index, amount_raw::varchar as amount_raw
from raw.utxo_openings
where network = $network and output_key in (select output_key from wanted) and output_index >= 0
