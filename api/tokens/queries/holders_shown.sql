-- The addresses of holders as answers show them, by rank: `shown` of other queries.
select
    holders.rank,
    coalesce(addresses.display_address, holders.holder_address) as wallet
from holders
left join marts.addresses as addresses on holders.holder_address = addresses.address
order by holders.rank
