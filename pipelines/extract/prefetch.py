"""Concurrent calls ahead of their use, a bounded number of them, with results in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], in_flight: int) -> Iterator[Result]:
    """Apply the function to the items in threads and yield the results in the items' order.

    At most `in_flight` results wait to be yielded. The first error ends the iteration; calls that have not begun are
    cancelled.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(in_flight) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) == in_flight:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
