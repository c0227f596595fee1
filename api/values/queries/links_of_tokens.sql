-- Links of tokens at the time of the version's build.
select
    links.subject_key,
    links.token_address,
    links.pair_key
from marts.token_pairs as links
semi join marts.tokens as tokens on links.subject_key = tokens.subject_key
where links.tenant_id = $tenant_id
