"""ccxt's class of one exchange, without importing the other hundred.

All of them take 84 MB and 0.6 s of processor time, 4.4 s where no byte code is cached; one 53 MB, 0.4 s, and 1.4 s.
The package's `__init__` imports them all. Here the package stands in `sys.modules` without its `__init__` having run,
so that one exchange's module can be imported under it; whoever asks it for anything else makes it run then, and finds
the whole package. What is done with the class does not go here.
"""

import importlib
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

_lock = threading.RLock()  # the thread in which `__init__` runs asks for names meanwhile


class UnknownExchange(Exception):
    """ccxt has no exchange of that name."""


class _UnrunPackage(ModuleType):
    """The package before its `__init__`: the first name that it has not yet makes it run."""

    _is_running = False

    def __getattr__(self, name: str) -> Any:
        missing = AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name.startswith("__"):
            raise missing
        with _lock:
            if isinstance(self, _UnrunPackage) and not self._is_running:
                self._run()
            if name in vars(self):
                return vars(self)[name]
        raise missing

    def _run(self) -> None:
        self._is_running = True
        try:
            assert self.__spec__ is not None
            assert self.__spec__.loader is not None
            self.__spec__.loader.exec_module(self)
            self.__class__ = ModuleType  # type: ignore[assignment]
        finally:
            vars(self).pop("_is_running")


def exchange_class(name: str) -> type[Any]:
    """Return ccxt's synchronous class of an exchange.

    Raises:
        UnknownExchange: there is none of that name.
    """
    with _lock:
        if "ccxt" not in sys.modules:
            specification = importlib.util.find_spec("ccxt")
            if specification is None:
                raise ModuleNotFoundError("ccxt is not installed; install the dependencies", name="ccxt")
            package = importlib.util.module_from_spec(specification)
            package.__class__ = _UnrunPackage
            sys.modules["ccxt"] = package
        try:
            module = importlib.import_module(f"ccxt.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"ccxt.{name}":
                raise
            raise UnknownExchange(name) from None
        package = sys.modules["ccxt"]
        if isinstance(package, _UnrunPackage):
            # The import put the module there, where the whole package has the class.
            vars(package).pop(name, None)
    found = getattr(module, name, None)
    if not isinstance(found, type):
        raise UnknownExchange(name)
    return found
