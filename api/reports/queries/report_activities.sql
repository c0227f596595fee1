-- Activities of a wallet between two positions of their order, with their values.
with paged as (

    select *
    from ordered
    where position between $first_position and $last_position

)

select
{% include '_report_activity.sql' %}
from paged
inner join marts.wallet_activities as activities on paged.place = activities.rowid
left join marts.wallet_activity_values as activity_values on paged.value_place = activity_values.rowid
order by paged.position
