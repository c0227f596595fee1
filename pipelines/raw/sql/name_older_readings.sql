-- Earlier releases did not store the tenants of a reading. Their readings become visible to all tenants that track the
-- token or the wallet now, within their views. Other facts of tokens are assigned in the same way.
create or replace temp table concerned as
select distinct network, kind, address, tenant_id from raw.control_subjects;

update raw.balance_observations as observations
set visible_to = named.visible_to
from (
    select
        reading,
        map_from_entries(list({'key': tenant_id, 'value': batch_id})) as visible_to
    from (
        select readings.rowid as reading, concerned.tenant_id, readings.batch_id
        from raw.balance_observations as readings
        inner join concerned
            on readings.network = concerned.network
            and concerned.kind = 'token'
            and readings.token_address = concerned.address
        union
        select readings.rowid, concerned.tenant_id, readings.batch_id
        from raw.balance_observations as readings
        inner join concerned
            on readings.network = concerned.network
            and concerned.kind = 'wallet'
            and readings.holder_address = concerned.address
    )
    group by reading
) as named
where observations.rowid = named.reading;

update raw.supply_observations as observations
set visible_to = named.visible_to
from (
    select
        readings.rowid as reading,
        map_from_entries(list({'key': concerned.tenant_id, 'value': readings.batch_id})) as visible_to
    from raw.supply_observations as readings
    inner join concerned
        on readings.network = concerned.network
        and concerned.kind = 'token'
        and readings.token_address = concerned.address
    group by readings.rowid
) as named
where observations.rowid = named.reading;

insert into raw.lost_readings
select distinct lost.network, lost.token_address, lost.holder_address, concerned.tenant_id
from raw.lost_readings as lost
inner join concerned
    on lost.network = concerned.network
    and concerned.address = if(concerned.kind = 'token', lost.token_address, lost.holder_address)
where lost.tenant_id is null;

insert into raw.suspected_tokens
select distinct suspected.network, suspected.token_address, suspected.since_block, concerned.tenant_id
from raw.suspected_tokens as suspected
inner join concerned on suspected.network = concerned.network
where suspected.tenant_id is null;

insert into raw.token_creations
select distinct creations.network, creations.token_address, creations.block_number, concerned.tenant_id
from raw.token_creations as creations
inner join concerned on creations.network = concerned.network
where creations.tenant_id is null;

insert into raw.token_metadata by name
select distinct metadata.* exclude (tenant_id), concerned.tenant_id
from raw.token_metadata as metadata
inner join concerned on metadata.network = concerned.network
where metadata.tenant_id is null;

delete from raw.token_metadata where tenant_id is null;

delete from raw.token_creations where tenant_id is null;

delete from raw.lost_readings where tenant_id is null;

delete from raw.suspected_tokens where tenant_id is null;

drop table concerned;
