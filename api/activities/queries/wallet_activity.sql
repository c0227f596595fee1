-- One activity of a wallet with the description of its transaction, and the decimals of the amounts in it.
select
{% include '_activity_columns.sql' %},
    detail,
    (select networks.native_decimals from marts.networks where networks.network = $network) as native_decimals
from marts.wallet_activities
where subject_key = $subject_key and tenant_id = $tenant_id and activity_id = $activity_id
