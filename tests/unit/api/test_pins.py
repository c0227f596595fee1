"""Pins of one process."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from api.engine.pins import Pins
from control import version_pins

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_use_is_recorded_again_after_the_clock_was_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_pins, "pin", lambda *_: None)
    store, serving = SimpleNamespace(write=nullcontext), SimpleNamespace(has=lambda _: True)
    times = iter([NOON + timedelta(days=1826), NOON, NOON + timedelta(seconds=59)])
    pins = Pins(cast(Any, store), cast(Any, serving), 1, clock=lambda: next(times))
    recorded = []
    for _ in range(3):
        record = pins.hold(7, "ten_a", is_new=False)
        recorded.append(record is not None)
        if record is not None:
            record()
    assert recorded == [True, True, False]
