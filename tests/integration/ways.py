"""Ways in which a node's calls about one unit fail."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from tests.chain.fault_proxy import CutFault, Fault, HttpFault, LateFault, LieFault, RpcFault

Chain = TypeVar("Chain")
IsAbout = Callable[[Chain, Sequence[Any]], bool]
"""Decides by the parameters whether a call is about the unit."""

WAYS = (
    "a halt",
    "unknown words",
    "a time-out",
    "status 500",
    "a closed connection",
    "too large",
    "null",
    "another type",
    "empty",
    "late once",
    "works the second time",
    "another block",
)
_WORDS = {"a halt": (-32000, "execution halted: InvalidFEOpcode"), "unknown words": (-32603, "Something odd happened")}


def faults(chain: Chain, methods: Mapping[str, IsAbout[Chain]], way: str, another: Callable[[Any], Any]) -> list[Fault]:
    """Return the faults that spoil all calls about a unit in one way.

    Args:
        methods: by name, what decides whether a call is about the unit.
        another: returns a result with another block.
    """

    def is_spoilt(calls: Sequence[dict[str, Any]]) -> bool:
        return any(call["method"] in methods and methods[call["method"]](chain, call["params"]) for call in calls)

    times = 1 if way in ("late once", "works the second time") else None
    if way in ("a time-out", "late once"):
        return [LateFault(when=is_spoilt, times=times)]
    if way == "a closed connection":
        return [CutFault(when=is_spoilt, part=0)]
    if way in ("status 500", "too large"):
        return [HttpFault(when=is_spoilt, status=500 if way == "status 500" else 413)]
    made: list[Fault] = []
    for method, is_about in methods.items():
        if way in _WORDS or times is not None:
            code, message = _WORDS.get(way, _WORDS["unknown words"])
            when = partial(is_about, chain)
            made.append(RpcFault(code=code, message=message, methods=[method], when=when, times=times))
        else:
            tell = partial(_tell, partial(is_about, chain), way, another)
            made.append(LieFault(methods=[method], tell=tell))
    return made


def _tell(
    is_about: Callable[[Sequence[Any]], bool], way: str, another: Callable[[Any], Any], params: list[Any], result: Any
) -> Any:
    if not is_about(params):
        return result
    if way == "null":
        return None
    if way == "another type":
        return {"odd": [1]} if not isinstance(result, dict) else [1]
    if way == "empty":
        return type(result)() if isinstance(result, list | dict) else "0x"
    return another(result)
