"""Asynchronous operations of a subject or a pair, of any kind: list, read and cancel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from api.http.calls import Call, Tabular
from api.http.lists import STORED, read_list, stored
from api.schema import Schema
from control import operations
from control.operations import OperationKind, OperationRow
from control.subjects import SubjectRow

Shown = TypeVar("Shown", bound=Schema)
Answer = TypeVar("Answer", bound=Schema)


@dataclass(frozen=True, slots=True)
class Owned(Generic[Shown]):
    """Operations of one kind that belong to a subject or a pair.

    Args:
        kind: kind of the operations.
        owner_key: key of the subject or pair.
        to_answer: converts a stored operation to the struct of answers.
        subject: the owner if it is a token or wallet; None for a pair.
    """

    kind: OperationKind
    owner_key: int
    to_answer: Callable[[OperationRow], Shown]
    subject: SubjectRow | None = None


def list_operations(
    call: Call, owned: Owned[Shown], answer: type[Answer], item: type[Shown], limit: int, cursor: str | None
) -> Answer | Tabular[Shown]:
    """Return a page of operations, the newest first; the ETag of a tabular answer includes their progress."""
    of = (call.tenant_id, owned.kind, owned.owner_key)
    fetch = stored(
        call,
        lambda session, count, after: operations.list_page(session, *of, count, after),
        lambda rows, *_: [owned.to_answer(operation) for operation in rows],
    )

    def reported() -> object:
        with call.store.read() as session:
            return operations.newest_report(session, *of)

    position = call.position(cursor, STORED)
    return read_list(call, answer, item, fetch, limit, position, subject=owned.subject, state=reported)


def read_operation(call: Call, owned: Owned[Shown], operation_id: str) -> Shown:
    """Return one operation, with the progress that the pipeline last reported.

    Raises:
        NotFound: the owner has no operation with this id.
    """
    with call.store.read() as session:
        operation = operations.get(session, call.tenant_id, operation_id, owned.kind, owned.owner_key)
    return owned.to_answer(operation)


def cancel_operation(call: Call, owned: Owned[Shown], operation_id: str) -> Shown:
    """Request the cancellation of an operation, and return the operation.

    Raises:
        NotFound: the owner has no operation with this id.
        Conflict: the operation is finished.
    """
    with call.store.write() as session:
        operation = operations.get(session, call.tenant_id, operation_id, owned.kind, owned.owner_key)
        cancelled = operations.cancel(session, call.principal, operation)
    return owned.to_answer(cancelled)
