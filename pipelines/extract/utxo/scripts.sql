-- Stored scripts of wallets of keys up to an index.
select wanted.address, scripts.address_index, scripts.script, scripts.paid_address
from raw.utxo_scripts as scripts
inner join wanted on scripts.address = wanted.address and scripts.address_index <= wanted.last_index
where scripts.network = $network
