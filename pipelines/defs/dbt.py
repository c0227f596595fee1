"""The dbt models as assets, with lineage from every network's raw assets to the marts."""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_dbt import DagsterDbtTranslator, DbtCliInvocation, DbtCliResource, DbtProject, dbt_assets
from packaging import version

from control.networks.definitions import Network
from control.settings import CHECKOUT, Settings, load_settings
from pipelines.defs.keys import filled_by
from pipelines.defs.resources import Warehouse
from pipelines.load.control import batch_of_run
from pipelines.load.state import built_fingerprint, has_prices_to_build, record_transform, transform_due
from pipelines.load.warehouse import movement_views
from warehouse import port

PROJECT_DIR = CHECKOUT / "dbt_project"
_DBT = str(Path(sys.executable).with_name("dbt"))

# What a cycle builds and tests: all models, and the tests that stay cheap as the history grows. Unit tests run in
# `make test`; the audits of the whole history, left out of the assets below, in the daily job.
# Neither writes dbt's manifest again: it is written in place, and a kill would leave half of it to the next run.
CYCLE_ARGUMENTS = ("build", "--no-write-json", "--exclude-resource-type", "unit_test")
# Views stay as they are until the project changes: 1 to 2 s less in each cycle. So does what is empty without pairs.
VIEWS = "config.materialized:view"
NEEDS_PAIRS = "needs_pairs"
AUDIT_ARGUMENTS = ("test", "--no-write-json", "--exclude-resource-type", "unit_test", "--select", "tag:audit")


def dbt_environment(settings: Settings) -> dict[str, str]:
    """The environment in which dbt finds the warehouse and writes nothing outside the data folder."""
    return {
        **port.Warehouse(settings).dbt_environment(),
        # Whatever the caller's own dbt works in.
        "DBT_TARGET": "warehouse",
        "DBT_PROFILES_DIR": str(PROJECT_DIR),
        "DBT_TARGET_PATH": str(settings.data_dir / "dbt" / "target"),
        "DBT_LOG_PATH": str(settings.data_dir / "dbt" / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }


def _fingerprint() -> str:
    digest = hashlib.sha256(movement_views().encode())
    for path in sorted(PROJECT_DIR.rglob("*")):
        # What dbt writes beside the project, when somebody runs it there, is no part of it.
        if path.relative_to(PROJECT_DIR).parts[0] in ("target", "logs"):
            continue
        if path.is_file() and path.suffix in (".sql", ".py", ".yml", ".yaml", ".csv", ".md"):
            digest.update(str(path.relative_to(PROJECT_DIR)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def prepared_manifest(settings: Settings) -> tuple[Path, str]:
    """Path of dbt's manifest and the project's fingerprint; parsed anew when the project's files changed.

    One process parses, others wait for it.

    Raises:
        RuntimeError: dbt could not parse the project; with dbt's own words.
    """
    target = settings.data_dir / "dbt" / "target"
    target.mkdir(parents=True, exist_ok=True)
    stamp = target.parent / "fingerprint"
    with (target.parent / "parse.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fingerprint = _fingerprint()
        manifest = target / "manifest.json"
        if manifest.exists() and stamp.exists() and stamp.read_text() == fingerprint:
            return manifest, fingerprint
        # A parse that is killed leaves no manifest that the next one trusts.
        stamp.unlink(missing_ok=True)
        done = subprocess.run(
            [_DBT, "--quiet", "parse", "--project-dir", str(PROJECT_DIR)],
            env={**os.environ, **dbt_environment(settings)},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"dbt could not parse the project:\n{done.stdout}{done.stderr}")
        stamp.write_text(fingerprint)
        return manifest, fingerprint


class _Translator(DagsterDbtTranslator):
    """Names marts by schema and model, and replaces each raw source by the assets that fill it."""

    def __init__(self, networks: list[Network]) -> None:
        super().__init__()
        self.networks = networks

    def get_asset_spec(self, manifest: Mapping[str, Any], unique_id: str, project: DbtProject | None) -> dg.AssetSpec:
        """The model's spec, its dependencies on raw tables resolved to the assets of every network."""
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


class _Dbt(DbtCliResource):
    """dbt as it is installed beside us."""

    @cached_property
    def _cli_version(self) -> version.Version:
        # The original starts `dbt --version` for it in each run: 1.3 s.
        return version.parse(metadata.version("dbt-core"))

    def cli(self, *arguments: Any, **options: Any) -> DbtCliInvocation:
        """Run dbt over the pipeline's own files, whichever job it is for."""
        os.environ.update(dbt_environment(load_settings()))
        return super().cli(*arguments, **options)

    def _initialize_dbt_core_adapter(self, args: Sequence[str]) -> Any:
        """Load no second dbt into the run's process (2 s): it serves column metadata alone, which nobody asks for."""


def transform_assets(networks: Mapping[str, Network]) -> tuple[dg.AssetsDefinition, DbtCliResource]:
    """The asset of all models, and the resource that runs dbt."""
    settings = load_settings()
    manifest, fingerprint = prepared_manifest(settings)
    project = DbtProject(PROJECT_DIR, target_path=settings.data_dir / "dbt" / "target", profiles_dir=PROJECT_DIR)
    enabled = [network for network in networks.values() if network.is_enabled]

    @dbt_assets(
        manifest=manifest,
        project=project,
        dagster_dbt_translator=_Translator(enabled),
        name="transform",
        exclude="tag:audit",
    )
    def transform(context: dg.AssetExecutionContext, warehouse: Warehouse, dbt: DbtCliResource) -> Iterator[Any]:
        """Build the marts where something changed; with nothing new, nothing is published either."""
        with warehouse.open() as connection:
            is_due = transform_due(connection, warehouse.settings.as_of_seconds)
            # What is published follows a build; also where nothing is new but the file that readers have is lost.
            if not is_due and warehouse.port.is_newest_readable():
                context.log.info("nothing new: the marts stay as they are")
                return
            built = built_fingerprint(connection)
            is_priced = has_prices_to_build(connection)
        arguments = [*CYCLE_ARGUMENTS]
        if built == fingerprint:
            # In one word: dagster-dbt takes the flag and one value, and dbt splits it.
            arguments += ["--exclude", VIEWS if is_priced else f"{VIEWS} tag:{NEEDS_PAIRS}"]
        elif built is not None:
            # What earlier models computed need not be what these would have: everything is built anew.
            arguments.append("--full-refresh")
        yield from dbt.cli(
            arguments, context=context, target_path=warehouse.settings.data_dir / "dbt" / "target"
        ).stream()
        with warehouse.open() as connection:
            record_transform(connection, batch_of_run(connection, context.run_id), fingerprint)

    return transform, _Dbt(project_dir=str(PROJECT_DIR), profiles_dir=str(PROJECT_DIR), dbt_executable=_DBT)


def built_marts(transform: dg.AssetsDefinition) -> list[dg.AssetKey]:
    """The marts that every build makes, for what follows a build to depend on.

    Not the views among them, nor what needs pairs: a cycle may leave those as they are, and a step that depends on an
    asset which was not made is skipped without a word.
    """
    kind = "dagster-dbt/materialization_type"
    specs = [spec for spec in transform.specs if spec.key.path[0] == "marts" and NEEDS_PAIRS not in spec.tags]
    return sorted(spec.key for spec in specs if spec.metadata[kind] != "view")
