-- States of all price sources in use, with the errors of this batch. A source that was never polled is due with its
-- next turn.
select
    used.source_id as source,
    strftime(polls.polled_at, '%Y-%m-%dT%H:%M:%SZ') as polled_at,
    coalesce(polls.price_count, 0) as prices,
    coalesce(polls.problem_count, 0) as problems,
    coalesce(lists.error, polls.error) as trouble,
    strftime(
        least(
            coalesce(lists.due_at, 'epoch'::timestamp),
            if(
                wanted.source_id is null,
                'infinity'::timestamp,
                greatest(coalesce(polls.due_at, 'epoch'::timestamp), coalesce(turns.next_at, 'epoch'::timestamp))
            )
        ),
        '%Y-%m-%dT%H:%M:%S.%fZ'
    ) as due_at,
    strftime(
        greatest(lists.tried_at, if(wanted.source_id is null, null, greatest(polls.polled_at, turns.turn_at))),
        '%Y-%m-%dT%H:%M:%S.%fZ'
    ) as tried_at,
    coalesce(greatest(polls.batch_id, lists.batch_id) = $batch, false) as in_last_cycle,
    (
        select string_agg(distinct failures.detail, '; ' order by failures.detail)
        from raw.collection_failures as failures
        where failures.batch_id = $batch and failures.network = used.source_id
    ) as error
from raw.price_sources_in_use as used
left join raw.price_polls as polls on used.source_id = polls.source_id
left join raw.price_turns as turns on used.source_id = turns.source_id
left join raw.market_lists as lists on used.source_id = lists.source_id
left join (select distinct source_id from raw.wanted_prices) as wanted on used.source_id = wanted.source_id
order by used.source_id;
