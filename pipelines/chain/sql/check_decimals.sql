select
    count(*),
    string_agg(
        format(
            'the definition of {} at {} says {} decimals, its contract {}: the contract counts; correct the definition',
            tokens.symbol,
            tokens.token_address,
            tokens.decimals,
            coalesce(metadata.decimals::varchar, 'none')
        ),
        '; '
        order by tokens.token_address
    )
from raw.common_tokens as tokens
inner join (select distinct network, token_address, decimals from raw.token_metadata) as metadata
    on tokens.network = metadata.network and tokens.token_address = metadata.token_address
where tokens.network = $network and metadata.decimals is distinct from tokens.decimals;
