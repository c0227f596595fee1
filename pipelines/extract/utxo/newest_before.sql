-- The newest stored header before a block.
select block_number, block_hash from raw.blocks
where network = $network and block_number < $before
order by block_number desc
limit 1
