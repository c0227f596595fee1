"""Lists: one page of rows as JSON, or all rows in a tabular form."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from api.engine.serving import Snapshot
from api.http.calls import ALL_ROWS, Call, Fetch, Fetched, Tabular
from api.http.paging import Key, Position
from api.schema import DataVersion, Schema
from control.pages import MAXIMUM_LIMIT, After, Page
from control.subjects import SubjectRow

Row = TypeVar("Row")
Item = TypeVar("Item", bound=Schema)
Answer = TypeVar("Answer", bound=Schema)

# Type of the sort keys of rows in the control store: the sorted value and an id.
STORED: type[tuple[str, str]] = tuple[str, str]


def stored(
    call: Call,
    list_page: Callable[[Session, int, After | None], Page[Row]],
    to_items: Callable[[Sequence[Row], Session, Any], list[Item]],
) -> Fetch[Item]:
    """Return a function that fetches pages of rows from the control store.

    Args:
        call: the request.
        list_page: reads up to a number of rows after a position.
        to_items: converts a page's rows to structs of the answer; its snapshot is that of the list, or None.
    """

    def fetch(snapshot: Snapshot | None, after: Key | None, count: int) -> Fetched[Item]:
        position = After(str(after[0]), str(after[1])) if after else None
        with call.store.read() as session:
            page = list_page(session, min(count, MAXIMUM_LIMIT), position)
            items = to_items(page.rows, session, snapshot)
        return Fetched(items, (page.after.value, page.after.id) if page.after else None)

    return fetch


def read_list(
    call: Call,
    answer: type[Answer],
    item: type[Item],
    fetch: Fetch[Item],
    limit: int,
    position: Position | None,
    snapshot: Snapshot | None = None,
    *,
    subject: SubjectRow | None = None,
    label: str | None = None,
    state: Callable[[], object] | None = None,
    **fields: Any,
) -> Answer | Tabular[Item]:
    """Return one page of a list, or the whole list if the client accepts a tabular form.

    Args:
        call: the request.
        answer: struct of a page: `data`, `page`, `as_of` where there is a snapshot, and the fields.
        item: struct of a row.
        fetch: reads rows after a key.
        limit: largest number of rows in a page.
        position: position of the request's cursor.
        snapshot: the published version that the rows come from; None for configuration.
        subject: the token or wallet that owns the list.
        label: name of the file if the list belongs to no token or wallet.
        state: returns state that changes independently of data and configuration, for the ETag of tabular answers.
        fields: further fields of a page.
    """
    if snapshot is not None:
        fields["as_of"] = DataVersion(data_version=snapshot.data_version(call.tenant_id))
    if call.is_tabular:
        empty = answer(data=[], page=ALL_ROWS, **fields)
        return call.tabular(snapshot, item, fetch, empty, subject, label, state() if state else None)
    fetched = fetch(snapshot, position.key if position else None, limit)
    return answer(data=list(fetched.rows), page=call.page(snapshot, fetched, limit), **fields)


def read_all(call: Call, snapshot: Snapshot, fetch: Fetch[Item]) -> list[Item]:
    """Return all rows of a short list. Its ETag needs them all if the clock may change any row."""
    return [row for batch in call.batches(snapshot.version, fetch) for row in batch]
