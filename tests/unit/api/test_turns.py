"""Turns of threads: tenant shares, order, and refused requests."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from api.errors import ApiError
from api.http.turns import Turns


class Work:
    """Requests that hold their turns until released."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str) -> None:
        """Start requests; the first letter of a name is its tenant."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._hold(name))
            await settle()

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            await self._tasks[name]
            await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._tasks[name]
        await settle()

    async def error(self, name: str) -> ApiError:
        with pytest.raises(ApiError) as found:
            await self._tasks[name]
        return found.value

    async def _hold(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.begun.append(name)
            await self._ends[name].wait()


async def settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def run(case: Coroutine[Any, Any, None]) -> None:
    asyncio.run(case)


def test_one_tenant_cannot_take_all_turns() -> None:
    async def case() -> None:
        work = Work(Turns("reads", capacity=3, share=2))
        await work.ask("a1", "a2", "a3", "b1")
        assert work.begun == ["a1", "a2", "b1"]
        await work.end("a1")
        assert work.begun == ["a1", "a2", "b1", "a3"]
        await work.end("a2", "a3", "b1")

    run(case())


def test_tenants_alternate_while_all_turns_are_taken() -> None:
    async def case() -> None:
        work = Work(Turns("writes", capacity=1, share=1))
        await work.ask("a1", "a2", "a3", "a4", "b1", "c1", "b2")
        order = ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]
        for name in order:
            await work.end(name)
        assert work.begun == order

    run(case())


def test_turns_are_first_come_first_served_within_a_tenant() -> None:
    async def case() -> None:
        work = Work(Turns("writes", capacity=1, share=1))
        await work.ask("a1", "a2", "a3")
        await work.end("a1", "a2", "a3")
        assert work.begun == ["a1", "a2", "a3"]

    run(case())


def test_too_many_waiting_requests_of_one_tenant_are_refused() -> None:
    async def case() -> None:
        work = Work(Turns("writes", capacity=1, share=1, most_waiting=2))
        await work.ask("a1", "a2", "a3", "a4", "b1")
        error = await work.error("a4")
        assert (error.status, error.code, error.headers) == (429, "too-many-waiting", {"Retry-After": "1"})
        await work.end("a1", "a2", "b1", "a3")
        assert work.begun == ["a1", "a2", "b1", "a3"]

    run(case())


def test_wait_that_is_too_long_is_refused_and_forgotten() -> None:
    async def case() -> None:
        work = Work(Turns("writes", capacity=1, share=1, wait_seconds=0.01))
        await work.ask("a1", "a2")
        error = await work.error("a2")
        assert (error.status, error.code, error.headers) == (503, "busy", {"Retry-After": "5"})
        await work.end("a1")
        await work.ask("b1")
        await work.end("b1")
        assert work.begun == ["a1", "b1"]

    run(case())


def test_disconnected_client_releases_its_place_and_its_turn() -> None:
    async def case() -> None:
        work = Work(Turns("writes", capacity=1, share=1))
        await work.ask("a1", "a2", "a3", "b1")
        await work.cancel("a2")
        await work.cancel("a1")
        assert work.begun == ["a1", "a3"]
        await work.end("a3", "b1")
        assert work.begun == ["a1", "a3", "b1"]

    run(case())


def test_turn_granted_during_a_disconnect_goes_to_the_next() -> None:
    async def case() -> None:
        work = Work(Turns("writes", capacity=1, share=1))
        first = work.turns.turn("c")
        await first.__aenter__()
        await work.ask("a1", "b1")
        # a1 has the turn as soon as this returns, although it runs only in the next step of the loop.
        await first.__aexit__(None, None, None)
        await work.cancel("a1")
        assert work.begun == ["b1"]
        await work.end("b1")

    run(case())


def test_turn_is_not_given_to_a_disconnected_request() -> None:
    async def case() -> None:
        work = Work(Turns("writes", capacity=1, share=1))
        first = work.turns.turn("c")
        await first.__aenter__()
        await work.ask("a1", "a2", "b1")
        work._tasks["a1"].cancel()
        # a1 has not run since and is still queued.
        await first.__aexit__(None, None, None)
        await work.cancel("a1")
        assert work.begun == ["a2"]
        await work.end("a2", "b1")
        assert work.begun == ["a2", "b1"]

    run(case())


def test_failed_request_releases_its_turn() -> None:
    async def case() -> None:
        turns = Turns("writes", capacity=1, share=1)

        def fail() -> None:
            raise ValueError("wrong")

        for _ in range(2):
            with pytest.raises(ValueError, match="wrong"):
                await turns.run("a", fail)

    run(case())
