select
    count(*),
    string_agg(
        format(
            'the definition of {} at {} says the symbol {}, its contract {}',
            tokens.symbol,
            tokens.token_address,
            tokens.symbol,
            coalesce(metadata.symbol::varchar, 'none')
        ),
        '; '
        order by tokens.token_address
    )
from raw.common_tokens as tokens
inner join (select distinct network, token_address, symbol from raw.token_metadata) as metadata
    on tokens.network = metadata.network and tokens.token_address = metadata.token_address
where tokens.network = $network and metadata.symbol is distinct from tokens.symbol;
