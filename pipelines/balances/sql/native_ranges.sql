-- Parts of wallets' views with transactions collected for their tenants; other tenants may have them elsewhere too.
create or replace temp table native_ranges as
select covered.subject_key, subjects.address, covered.from_block, covered.to_block
from raw.covered_ranges as covered
inner join raw.control_subjects as subjects on covered.subject_key = subjects.subject_key
where subjects.network = $network and covered.is_native;
