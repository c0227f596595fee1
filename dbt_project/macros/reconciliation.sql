{#
    The reading that confirms a balance. A rest is the time between two blocks with a movement or an adjustment. A reading that agrees
    confirms its whole rest for tokens that move by events alone, and only the balance of its own block for others. The functions live
    in the marts file, so that the newest state and that of any earlier block are judged alike.
#}

{% macro confirming_block(behaviour, at_block, moved, checked) -%}
    {{ in_marts('confirming_block') }}(
        {{ behaviour }}, {{ at_block }}, {{ moved }}, {{ checked }}, null::bigint, null::bigint, null::bigint
    )
{%- endmacro %}


{# The same if rows after at_block are known too; the columns of a query are named as the function's arguments. #}
{% macro confirming_block_around(at_block) -%}
    {{ in_marts('confirming_block') }}(
        behaviour, {{ at_block }}, moved_block, checked_block, next_changed_block, next_checked_block, next_adjusted_block
    )
{%- endmacro %}


{# The same as an expression, for queries without an open mart; the columns are named as the function's arguments. #}
{% macro confirming_block_case(balances='', at_block='at_block') -%}
    {%- set of = balances ~ '.' if balances else '' -%}
    case
        when {{ of }}checked_block = {{ at_block }} then {{ of }}checked_block
        when coalesce({{ of }}behaviour, '') != 'Standard' then null
        when
            {{ of }}checked_block >= coalesce({{ of }}moved_block, -1)
            and coalesce(
                {{ of }}next_adjusted_block > {{ of }}next_checked_block, {{ of }}next_adjusted_block is null
            )
            then {{ of }}checked_block
        when {{ of }}next_checked_block < coalesce({{ of }}next_changed_block, 9223372036854775807)
            then {{ of }}next_checked_block
    end
{%- endmacro %}


{% macro reconciliation(confirming_block, is_adjusted) -%}
    {{ in_marts('reconciliation') }}({{ confirming_block }}, {{ is_adjusted }})
{%- endmacro %}


{# Certainty of a supply, by the block that confirms it; a supply is confirmed like a balance. #}
{% macro supply_status(total_supply_raw, confirming_block) -%}
    {{ in_marts('supply_status') }}({{ total_supply_raw }}, {{ confirming_block }})
{%- endmacro %}


{# Run before every build. Only readings reveal adjustments, so none is after the newest reading before a block. #}
{% macro create_reconciliation_functions() -%}
    create or replace macro marts_db.marts.confirming_block(
        behaviour, at_block, moved_block, checked_block, next_changed_block, next_checked_block, next_adjusted_block
    ) as
    {{ confirming_block_case() }};
    create or replace macro marts_db.marts.reconciliation(confirming_block, is_adjusted) as
    case when confirming_block is null then 'Unchecked' when is_adjusted then 'Adjusted' else 'Reconciled' end;
    create or replace macro marts_db.marts.supply_status(total_supply_raw, confirming_block) as
    case
        when total_supply_raw is null then 'Unknown'
        when confirming_block is null then 'Unconfirmed'
        when total_supply_raw = 0::bignum then 'ZeroSupply'
        else 'Observed'
    end;
    comment on macro marts_db.marts.confirming_block is
    'Block of the reading that confirms a balance at at_block, null when none does. Of the pair in the covered range: newest movement and newest comparison up to at_block, and behind it the first row that is a movement or an adjustment, the first comparison, and the first adjustment. Unit: block number.';
    comment on macro marts_db.marts.reconciliation is
    'Unchecked without a confirming block; with one Adjusted where readings differed from movements up to the block, else Reconciled. Unit: none, a word.';
    comment on macro marts_db.marts.supply_status is
    'Unknown for a supply that was never read, Unconfirmed without a confirming block, else ZeroSupply or Observed. Unit: none, a word.';
{%- endmacro %}


{# Counts of holders' readings that show how a token moves; columns of a grouped query over rows of int_balances_latest. #}
{% macro behaviour_counts(holders) -%}
    count_if({{ is_known_again(holders) }}) as reread_count,
    sum({{ holders }}.adjustment_count) as adjustment_count,
    sum({{ holders }}.short_adjustment_count) as short_adjustment_count,
    sum({{ holders }}.ignored_adjustment_count) as ignored_adjustment_count,
    count_if({{ holders }}.adjustment_count > {{ holders }}.short_adjustment_count) as gained_count,
    count_if({{ holders }}.resting_adjustment_count > 0) as rebased_count,
    count_if(
        {{ is_known_again(holders) }}
        and ({{ holders }}.balance_raw != 0::bignum or {{ holders }}.resting_adjustment_count > 0)
    ) as rebasable_count
{%- endmacro %}


{# An opening balance of 0 counts as a reading; so does a reading that contradicts an opening. #}
{% macro is_known_again(holders) -%}
    (
        {{ holders }}.reading_count + case when {{ holders }}.opened_by = 'Creation' then 1 else 0 end > 1
        or {{ holders }}.adjustment_count > 0
    )
{%- endmacro %}


{#
    Behaviour of a token. It is unknown until some holder has a second reading. A fee is taken if transfers arrive short; one holder may
    receive it. A token rebases if most of the balances that were read twice changed while they rested. Anything else, such as an event
    without a transfer, breaks the rules of fungible tokens.
#}
{% macro behaviour(readings) -%}
    case
        when coalesce({{ readings }}.reread_count, 0) = 0 then null
        when {{ readings }}.adjustment_count = 0 then 'Standard'
        when {{ readings }}.rebased_count > 1 and {{ readings }}.rebased_count * 2 >= {{ readings }}.rebasable_count
            then 'Rebasing'
        when
            {{ readings }}.short_adjustment_count > 0
            and {{ readings }}.ignored_adjustment_count = 0
            and {{ readings }}.gained_count <= 1
            then 'FeeOnTransfer'
        else 'NonConforming'
    end
{%- endmacro %}


{# Block of the newest reading that a balance was compared with: not one from which its opening was derived, unless it differs. #}
{% macro compared_block(balances) -%}
    case
        when
            {{ balances }}.opened_by = 'Derived'
            and {{ balances }}.checked_block = {{ balances }}.opening_block
            and {{ balances }}.adjustment_count = 0
            then null
        else {{ balances }}.checked_block
    end
{%- endmacro %}
