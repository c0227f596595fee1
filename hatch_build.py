"""Build hook: put the files that are in no Python package into the wheel, where `control.resources` finds them."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SWAGGER_UI = (
    "swagger-ui.css",
    "swagger-ui-bundle.js",
    "swagger-ui-bundle.js.LICENSE.txt",
    "favicon-32x32.png",
    "LICENSE",
    "NOTICE",
)
# Parts of the dbt project by name, because dbt may have written its own folders beside them.
_SHIPPED = (
    "dagster.yaml",
    "workspace.yaml",
    "build/reports",
    *(f"dbt_project/{name}" for name in ("dbt_project.yml", "profiles.yml", "macros", "models", "tests")),
    *(f"node_modules/swagger-ui-dist/{name}" for name in _SWAGGER_UI),
)


class ShippedFiles(BuildHookInterface[Any]):
    """Adds the files to a wheel; an editable installation uses those of the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files; the build fails if one is missing."""
        if version == "standard":
            build_data["force_include"] |= {path: f"control/shipped/{path}" for path in _SHIPPED}
