-- A discovery that changed prices of its pair in this batch succeeds only when the batch is published.
update raw.price_discoveries
set changed_batch = $batch
where
    operation_key = $operation
    and exists (
        select 1 from raw.price_changes where price_changes.batch_id = $batch and price_changes.pair_key = $pair
    );
