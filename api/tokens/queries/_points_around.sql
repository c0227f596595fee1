max(block_number) filter (
            where range_from_block = $first_block and block_number <= $block_number and is_moved
        ) as moved_block,
        max(block_number) filter (
            where range_from_block = $first_block and block_number <= $block_number and is_checked
        ) as checked_block,
        min(block_number) filter (
            where range_from_block = $first_block and block_number > $block_number and (is_moved or is_adjusted)
        ) as next_changed_block,
        min(block_number) filter (
            where range_from_block = $first_block and block_number > $block_number and is_checked
        ) as next_checked_block,
        min(block_number) filter (
            where range_from_block = $first_block and block_number > $block_number and is_adjusted
        ) as next_adjusted_block
