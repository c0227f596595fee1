-- The addresses of holders as answers show them, by rank: `shown` of other queries. Null where no rule of the marts says.
select
    holders.rank,
    addresses.display_address as wallet
from holders
left join marts.addresses as addresses on holders.holder_address = addresses.address
order by holders.rank
