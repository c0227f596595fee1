-- Scanned outputs that are stored for their wallet neither as an output nor in an opening.
select wanted.place from wanted
anti join (
    select address, output_key, transaction_hash, output_index
    from raw.utxo_outputs
    where network = $network
    union all
    select address, output_key, transaction_hash, output_index
    from raw.utxo_openings
    where network = $network
) as stored using (address, output_key, transaction_hash, output_index)
order by wanted.place
