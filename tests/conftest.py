"""What all tests share: no clock decides them."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from hypothesis import HealthCheck, settings

# An example may take as long as a busy machine needs.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


class _NoPandas(MetaPathFinder):
    """Says at once that it is not installed: DuckDB looks for it twice at each bound value, also of those in a list."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


sys.meta_path.insert(0, _NoPandas())
