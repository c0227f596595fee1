-- Assets of wallets without a known balance at as-of: the native asset, and every token that could not be read.
with

views as (

    select * from {{ ref('int_covered_ranges') }}
    where
        kind = 'wallet'
        and is_as_of

),

lost_readings as (

    select * from {{ ref('stg_pipeline__lost_readings') }}

),

units as (

    select * from {{ ref('stg_pipeline__unread_units') }}

),

listed_tokens as (

    select * from {{ ref('int_wallet_tokens_listed') }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

known as (

    select
        subject_key,
        range_from_block,
        token_address
    from {{ ref('int_balances_latest') }}
    where balance_raw is not null

),

expected as (

    select
        subject_key,
        'native' as token_address
    from views

    union distinct

    select
        views.subject_key,
        lost_readings.token_address
    from views
    inner join lost_readings
        on
            views.tenant_id = lost_readings.tenant_id
            and views.network = lost_readings.network
            and views.address = lost_readings.holder_address

),

unread as (

    select
        views.*,
        expected.token_address
    from expected
    inner join views on expected.subject_key = views.subject_key
    anti join known
        on
            views.subject_key = known.subject_key
            and views.from_block = known.range_from_block
            and expected.token_address = known.token_address

),

-- A call names its holder at the end of its calldata.
reasons as (

    select
        unread.subject_key,
        unread.token_address,
        arg_min(units.call || ': ' || units.reason, (units.unit_kind, units.part)) as reason
    from unread
    inner join units
        on
            unread.network = units.network
            and case units.unit_kind
                when 'wallet' then unread.token_address = 'native' and unread.address = units.address
                when 'contract' then unread.token_address = units.address
                when 'call'
                    then unread.token_address = units.address and ends_with(units.part, substr(unread.address, 3))
            end
    group by unread.subject_key, unread.token_address

)

select
    unread.tenant_id,
    unread.subject_key,
    unread.from_block as range_from_block,
    unread.token_address,
    listed_tokens.token_id,
    labels.symbol as token_symbol,
    labels.decimals as token_decimals,
    coalesce(reasons.reason, 'not read yet') as reason
from unread
left join reasons
    on
        unread.subject_key = reasons.subject_key
        and unread.token_address = reasons.token_address
left join listed_tokens
    on
        unread.subject_key = listed_tokens.subject_key
        and unread.token_address = listed_tokens.token_address
left join labels
    on
        unread.tenant_id = labels.tenant_id
        and unread.network = labels.network
        and unread.token_address = labels.token_address
order by unread.subject_key, unread.token_address
