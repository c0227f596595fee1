"""Files that come with the product beside its packages: the dbt project, web pages, the definition of Dagster.

The wheel has them in the folder `shipped` of this package, where `hatch_build.py` puts them. In a checkout they stay in
their places. The folders below have the same layout in both. Nothing writes to them: site-packages may be read-only.
"""

from importlib.resources import files
from pathlib import Path

PACKAGES = Path(str(files("control"))).resolve().parent
"""The folder of the product's packages: the checkout, or site-packages."""
_SHIPPED = PACKAGES / "control" / "shipped"
_IS_WHEEL = _SHIPPED.is_dir()

DAGSTER_HOME = _SHIPPED if _IS_WHEEL else PACKAGES
"""The folder of `dagster.yaml`; it names the data folder for everything that Dagster writes."""
WORKSPACE = DAGSTER_HOME / "workspace.yaml"
DBT_PROJECT = DAGSTER_HOME / "dbt_project"
REPORTS = DAGSTER_HOME / "build" / "reports"
SWAGGER_UI = DAGSTER_HOME / "node_modules" / "swagger-ui-dist"
REFERENCE = DAGSTER_HOME / "docs" / "reference"
"""Pages that are written from the code; the wheel has none."""

DEFAULT_DATA_DIR = Path("~/.local/share/ledgermart") if _IS_WHEEL else PACKAGES / "data"
