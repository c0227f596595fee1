"""Causes of failed runs, as one line for people."""

import dagster as dg

from control.errors import StoreLost, StoreUnavailable
from warehouse.damage import DamagedFileError
from warehouse.lock import WriterBusyError

_MOST_CHARACTERS = 300
# Their messages name cause and fix.
_KNOWN = {error.__name__: error for error in (WriterBusyError, DamagedFileError, StoreLost, StoreUnavailable)}


def known_cause(result: dg.ExecuteInProcessResult) -> tuple[type[Exception], str] | None:
    """Return class and message of the first error that names a fix; None if there was none."""
    for event in result.all_events:
        error = getattr(event.event_specific_data, "error", None)
        while error is not None:
            if error.cls_name in _KNOWN:
                # Dagster writes the class in front.
                return _KNOWN[error.cls_name], error.message.partition(f"{error.cls_name}: ")[2].strip()
            error = error.cause
    return None


def failed_steps(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    """Return the first line of each failed step's error, shortened, by the step's name."""
    return {str(event.step_key): _first_line(event) for event in result.all_events if event.is_step_failure}


def _first_line(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        words = data.user_failure_data.description
    else:
        error = data.error
        while error is not None and error.cause is not None:
            error = error.cause
        words = "" if error is None else error.message
    return words.strip().partition("\n")[0][:_MOST_CHARACTERS]
