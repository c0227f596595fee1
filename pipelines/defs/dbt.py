"""dbt models as assets, with lineage from every network's raw assets to the marts."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster_dbt import DagsterDbtTranslator, DbtProject, dbt_assets

from control.networks.definitions import Network
from control.settings import load_settings
from pipelines.defs.keys import BUILD, filled_by
from pipelines.defs.project import DbtError, keep_manifest, parsed_project, run_dbt
from pipelines.defs.resources import Warehouse
from pipelines.defs.runs import REBUILD_TAG, has_tag, shard_pool
from pipelines.defs.sharing import served_version
from pipelines.raw.builds import (
    begin_build,
    build_identity,
    has_attestations_to_build,
    has_prices_to_build,
    has_values_to_build,
    has_wallets_to_build,
    newest_publication,
    record_transform,
)
from pipelines.tenants.configuration import batch_of_run
from pipelines.tenants.versions import advance, transform_due
from warehouse.damage import is_damage

# A cycle builds all models, and runs the tests that stay cheap as the history grows. Unit tests run in `make test`;
# audits of the whole history run in the daily job.
CYCLE_ARGUMENTS = ("build", "--exclude-resource-type", "unit_test", "--exclude-resource-type", "exposure")
AUDIT = "tag:audit"
# Skip views unless the project changed. Skip tagged models that are empty and would stay empty.
VIEWS = "config.materialized:view"
NEEDED = {
    "needs_pairs": has_prices_to_build,
    "needs_attestations": has_attestations_to_build,
    "needs_wallets": has_wallets_to_build,
    "needs_values": has_values_to_build,
}
AUDIT_ARGUMENTS = ("test", "--exclude-resource-type", "unit_test", "--select", AUDIT)
_GOOD = ("success", "pass", "warn", "no-op")


class _Translator(DagsterDbtTranslator):
    """Translator that names marts by schema and model, and replaces each raw source with the assets that fill it."""

    def __init__(self, networks: list[Network]) -> None:
        super().__init__()
        self.networks = networks

    def get_asset_spec(self, manifest: Mapping[str, Any], unique_id: str, project: DbtProject | None) -> dg.AssetSpec:
        """Return the model's spec; its dependencies on raw tables are resolved to the assets of every network."""
        spec = super().get_asset_spec(manifest, unique_id, project)
        sources = {self.get_asset_key(source): source["name"] for source in manifest["sources"].values()}
        keys = {
            key
            for dependency in spec.deps
            for key in (
                filled_by(sources[dependency.asset_key], self.networks)
                if dependency.asset_key in sources
                else [dependency.asset_key]
            )
        }
        return spec.replace_attributes(deps=[dg.AssetDep(key) for key in sorted(keys)])


@dataclass(frozen=True)
class _Build:
    """Result of a build: results and errors of its nodes, whether marts were kept, and the identity to record."""

    results: list[Any]
    failed: str
    keeps_marts: bool
    identity: str


def failures(results: list[Any]) -> str:
    """Return dbt's messages for the failed nodes as one text; empty if none failed."""
    failed = (result for result in results if result.status in ("error", "fail", "runtime error"))
    return "; ".join(f"{result.node.name}: {result.message}" for result in failed)


def _events(
    results: list[Any], keys: Mapping[str, dg.AssetKey], checks: Mapping[str, dg.AssetCheckKey]
) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
    """Yield Dagster's events: a materialization for each model that was built, a check for each test that ran.

    As results of the step each would cost a look-up of its inputs, and one more event.
    """
    for result in results:
        name, metadata = result.node.name, {"seconds": result.execution_time}
        if result.node.resource_type == "model" and result.status in _GOOD:
            yield dg.AssetMaterialization(keys[result.node.unique_id], metadata=metadata)
        elif name in checks and result.status != "skipped":
            is_warning = result.node.config.severity.lower() == "warn"
            yield dg.AssetCheckEvaluation(
                asset_key=checks[name].asset_key,
                check_name=name,
                passed=result.status == "pass",
                severity=dg.AssetCheckSeverity.WARN if is_warning else dg.AssetCheckSeverity.ERROR,
                description=result.message,
                metadata={**metadata, "rows": result.failures or 0},
            )


def transform_assets(networks: Mapping[str, Network]) -> dg.AssetsDefinition:
    """Return the assets of all models, and of their build as a whole."""
    settings = load_settings()
    project = parsed_project(settings)
    manifest = project.manifest.writable_manifest().to_dict(omit_none=False)
    translator = _Translator([network for network in networks.values() if network.is_enabled])

    keys = {unique_id: translator.get_asset_key(node) for unique_id, node in manifest["nodes"].items()}

    def build_models(
        context: dg.AssetExecutionContext, warehouse: Warehouse, served: int | None, *, anew: bool
    ) -> _Build:
        """Build the models that the step selects; all of them from the raw tables if `anew`, or if the marts are lost.

        `served` is the version in force for API nodes on other machines when the step began.

        Raises:
            DbtError: dbt failed before it built a model, and no file is damaged.
        """
        port, mark = warehouse.port, uuid.uuid4().hex
        before = port.mark_marts(mark, served)
        with warehouse.open() as connection:
            keeps_marts = begin_build(connection, project.fingerprint, None if anew else before, mark)
            empty = [f"tag:{tag}" for tag, has_any in NEEDED.items() if not has_any(connection)]
        arguments, excluded = [*CYCLE_ARGUMENTS], [AUDIT]
        if keeps_marts:
            excluded += [VIEWS, *empty]
        else:
            # Models of another build or project may have computed other rows or columns, so everything is rebuilt.
            context.log.info("all marts are built again from the raw tables")
            port.discard_marts()
            port.mark_marts(mark, served)
            arguments.append("--full-refresh")
        if keeps_marts and BUILD not in context.selected_asset_keys:
            chosen = [name for name, key in keys.items() if key in context.selected_asset_keys]
            arguments += ["--select", *(manifest["nodes"][name]["name"] for name in chosen)]
        results: list[Any] = []
        try:
            results = run_dbt(warehouse.settings, [*arguments, "--exclude", *excluded])
            failed = failures(results)
        except DbtError as error:
            failed = str(error)
            if not is_damage(failed):
                raise
        return _Build(results, failed, keeps_marts, build_identity(project.fingerprint, mark))

    def transform(context: dg.AssetExecutionContext, warehouse: Warehouse) -> Iterator[Any]:
        """Build the marts if something changed; otherwise nothing is published either."""
        port, anew = warehouse.port, has_tag(context.run, REBUILD_TAG)
        with warehouse.open() as connection:
            is_due = transform_due(connection, warehouse.settings.as_of_seconds)
            # A publication follows a build, so build too if the published file is lost.
            if not (is_due or anew) and port.has_marts() and port.is_newest_readable():
                context.log.info("nothing new: the marts are not rebuilt")
                return
            published, served = port.published(), served_version(warehouse.settings)
            newest = max(newest_publication(connection), published.version if published else 0, served or 0)
            advance(connection, newest, warehouse.settings.as_of_seconds)
        built = build_models(context, warehouse, served, anew=anew)
        if is_damage(built.failed):
            # Raw tables cannot be computed again, so this raises if they are damaged too.
            port.check_rows("raw")
            if not anew:
                context.log.warning(f"computed tables are damaged, and all are built again: {built.failed}")
                built = build_models(context, warehouse, served, anew=True)
        yield from _events(built.results, keys, checks)
        if built.failed:
            raise dg.Failure(built.failed, allow_retries=False)
        if BUILD not in context.selected_asset_keys:
            # The models that were not chosen are still outdated: the next cycle builds all.
            return
        keep_manifest(warehouse.settings, is_new=not built.keeps_marts)
        with warehouse.open() as connection:
            record_transform(connection, batch_of_run(connection, context.run_id), built.identity)
        yield dg.MaterializeResult(BUILD, metadata={"models": len(built.results)})

    # dagster-dbt lists the models and tests.
    models = dbt_assets(manifest=manifest, dagster_dbt_translator=translator, exclude=AUDIT)(transform)
    checks = {check.name: check.key for check in models.check_specs}
    made_of = {dependency.asset_key for spec in models.specs for dependency in spec.deps} - models.keys
    build = dg.AssetSpec(
        BUILD,
        # The inputs of the models come first, even if no model is selected.
        deps=sorted(made_of | {key for key in models.keys if key.path[0] == "marts"}),
        group_name="serving",
        description="Build of all models; it runs if something changed.",
        kinds={"dbt", "duckdb"},
    )
    specs = [*models.specs, build]
    return dg.multi_asset(
        name="transform",
        specs=specs,
        check_specs=[*models.check_specs],
        can_subset=True,
        pool=shard_pool(settings),
    )(transform)
