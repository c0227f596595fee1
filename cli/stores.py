"""The control store as commands open it: only `ledgermart init` creates one."""

from control.errors import StoreLost
from control.settings import Settings
from control.store import RESTORE, ControlStore, open_store
from warehouse.port import Warehouse


def open_existing(settings: Settings) -> ControlStore:
    """Open the control store, and bring its schema up to date.

    Raises:
        StoreLost: it is missing, empty or damaged; the message says whether to restore or to create it.
        StoreUnavailable: it is not reachable.
    """
    store = open_store(settings)
    check_exists(settings, store)
    store.migrate()
    return store


def check_exists(settings: Settings, store: ControlStore) -> None:
    """Check that there is a control store.

    Raises:
        StoreLost: there is none, or it is damaged.
        StoreUnavailable: it is not reachable.
    """
    if store.exists():
        return
    if Warehouse(settings).has_remains():
        raise StoreLost(lost_beside_warehouse(settings, store))
    raise StoreLost(f"there is no control store yet ({store.place}); run `ledgermart init --tenant NAME`")


def lost_beside_warehouse(settings: Settings, store: ControlStore) -> str:
    """Return the error of a lost control store, with the fix."""
    return (
        f"the control store ({store.place}) is missing or empty, but {settings.data_dir} holds the data of an "
        f"installation; {RESTORE}, or begin without its tenants and keys: `ledgermart init --tenant NAME "
        "--new-control-store`"
    )
