"""An HTTP proxy in front of a node with the faults of real providers, over real sockets.

Faults, their number and their methods can be changed while it runs. The proxy records all requests.
"""

import json
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import urllib3

from tests.chain.http_server import LoopbackServer, Reply
from tests.chain.late_answers import LATE
from tests.chain.node import NodeError

_LOGS = ("eth_getLogs",)
_HEADERS = ("eth_blockNumber", "eth_getBlockByNumber")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Base class of faults.

    Args:
        times: number of spoiled requests (for faults of single calls: calls); None: until cleared.
        methods: spoiled JSON-RPC methods; empty: all.
    """

    times: int | None = None
    methods: Collection[str] = ()

    concerned: ClassVar[Collection[str]] = ()
    """Methods that the kind of fault is about, whatever `methods` says; empty: all."""

    def concerns(self, methods: Collection[str]) -> bool:
        """Return whether the fault could spoil a call of one of the methods."""
        return any(all(not some or method in some for some in (self.methods, self.concerned)) for method in methods)


@dataclass(frozen=True, kw_only=True)
class RequestFault(Fault):
    """A fault of a whole HTTP request, which may be a batch; other faults spoil single calls.

    Args:
        when: decides by a request's calls whether to spoil it; default: every request.
    """

    when: Callable[[Sequence[dict[str, Any]]], bool] = lambda calls: True


@dataclass(frozen=True, kw_only=True)
class HttpFault(RequestFault):
    """An HTTP status instead of an answer, for example 429 with `retry_after` seconds, 413, 503."""

    status: int
    retry_after: str | None = None
    body: bytes = b"{}"


@dataclass(frozen=True, kw_only=True)
class CutFault(RequestFault):
    """The true answer, its connection closed after a part (0 to 1) of the body."""

    part: float = 0.5


@dataclass(frozen=True, kw_only=True)
class LateFault(RequestFault):
    """An answer that comes too late, where `late_answers_time_out` is in force."""


@dataclass(frozen=True, kw_only=True)
class GarbageFault(RequestFault):
    """Status 200 and something that is not the JSON of an answer, as a gateway's error page."""

    body: bytes = b"<html>Bad gateway</html>"


@dataclass(frozen=True, kw_only=True)
class ActionFault(RequestFault):
    """The true answer, after an action such as a reorganisation: the chain moves while it is read."""

    action: Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class HostileFault(RequestFault):
    """A harmful answer: one of `tests.chain.hostile_answers`, computed from the request's calls."""

    answer: Callable[[Sequence[dict[str, Any]]], Reply]


@dataclass(frozen=True, kw_only=True)
class RpcFault(Fault):
    """A JSON-RPC error inside a 200; `when` decides by a call's parameters whether to spoil it; default: every call."""

    code: int
    message: str
    data: Any = None
    when: Callable[[Sequence[Any]], bool] = lambda params: True


@dataclass(frozen=True, kw_only=True)
class RangeFault(Fault):
    """eth_getLogs over more than `blocks` blocks is refused; the message may hold {blocks}."""

    concerned = _LOGS

    blocks: int
    code: int = -32602
    message: str = "query exceeds max block range {blocks}"


@dataclass(frozen=True, kw_only=True)
class ResultFault(Fault):
    """eth_getLogs with more than `logs` results is refused, with the range that would do when `is_suggesting`."""

    concerned = _LOGS

    logs: int
    is_suggesting: bool = False


@dataclass(frozen=True, kw_only=True)
class StaleFault(Fault):
    """A stale node: its head is `blocks` blocks before the true one."""

    concerned = _HEADERS

    blocks: int


@dataclass(frozen=True, kw_only=True)
class LostLogsFault(Fault):
    """eth_getLogs omits the last `logs` logs of each answer that has any."""

    concerned = _LOGS

    logs: int = 1


@dataclass(frozen=True, kw_only=True)
class ResultSwap(Fault):
    """A fixed result instead of the true one, for example a chain id."""

    result: Any


@dataclass(frozen=True, kw_only=True)
class LieFault(Fault):
    """A false result, computed by `tell` from the call's parameters and the true result."""

    tell: Callable[[list[Any], Any], Any]


@dataclass
class _Armed:
    fault: Fault
    left: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.fault.times


_AnyFault = TypeVar("_AnyFault", bound=Fault)


class FaultProxy(LoopbackServer):
    """A proxy to `upstream` (URL of a node), honest until `inject` is called.

    `stop` makes connections be refused, `start` lets them in again on the same port.
    """

    def __init__(self, upstream: str) -> None:
        super().__init__()
        self._http = urllib3.PoolManager(maxsize=16, retries=False, timeout=300)
        parts = urllib3.util.parse_url(upstream)
        self._upstream = parts._replace(auth=None).url
        self._headers = {
            "Content-Type": "application/json",
            **(urllib3.util.make_headers(basic_auth=parts.auth) if parts.auth else {}),
        }
        self._lock = threading.Lock()
        self._acting = threading.Lock()
        self._armed: list[_Armed] = []
        self.calls: list[tuple[str, list[Any]]] = []

    def inject(self, *faults: Fault) -> None:
        """Add faults; if several fit, the first one acts."""
        with self._lock:
            self._armed.extend(_Armed(fault) for fault in faults)

    def withdraw(self, fault: Fault) -> None:
        """Remove one fault if it is still active."""
        with self._lock:
            self._armed = [armed for armed in self._armed if armed.fault is not fault]

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._armed.clear()

    def pending(self) -> int:
        """Return the number of active faults; one with `times` ends after this number of uses."""
        return len(self.faults())

    def faults(self) -> list[Fault]:
        """Return the active faults."""
        with self._lock:
            return [armed.fault for armed in self._armed]

    def count(self, method: str) -> int:
        """Return the number of calls of a method, including spoiled ones."""
        with self._lock:
            return sum(1 for name, _ in self.calls if name == method)

    def stop(self) -> None:
        """Refuse connections, and close those that are open."""
        super().stop()
        self._http.clear()

    def answer(self, body: bytes) -> Reply:
        """Forward one request, or spoil it."""
        request = json.loads(body)
        calls = request if isinstance(request, list) else [request]
        methods = [call["method"] for call in calls]
        with self._lock:
            self.calls.extend((call["method"], list(call.get("params", []))) for call in calls)
        fault = self._take(RequestFault, methods, lambda fault: fault.when(calls))
        if isinstance(fault, HttpFault):
            headers = {} if fault.retry_after is None else {"Retry-After": fault.retry_after}
            return Reply(fault.body, fault.status, headers)
        if isinstance(fault, GarbageFault):
            return Reply(fault.body)
        if isinstance(fault, LateFault):
            return LATE
        if isinstance(fault, HostileFault):
            return fault.answer(calls)
        if isinstance(fault, ActionFault):
            with self._acting:
                fault.action()
        reply = self._pass_on(request, calls)
        if isinstance(fault, CutFault):
            return replace(reply, cut_after=int(len(reply.body) * fault.part))
        return reply

    def _take(
        self, kind: type[_AnyFault], methods: Collection[str], fits: Callable[[_AnyFault], bool] = lambda fault: True
    ) -> _AnyFault | None:
        """Use the first active fault of a kind that concerns one of the methods and fits."""
        with self._lock:
            for armed in self._armed:
                fault = armed.fault
                if isinstance(fault, kind) and fault.concerns(methods) and fits(fault):
                    self._use(armed)
                    return fault
        return None

    def _use(self, armed: _Armed) -> None:
        if armed.left is not None:
            armed.left -= 1
            if armed.left == 0:
                self._armed.remove(armed)

    def _pass_on(self, request: Any, calls: list[dict[str, Any]]) -> Reply:
        methods = {call["method"] for call in calls}
        with self._lock:
            single = [armed.fault for armed in self._armed if not isinstance(armed.fault, RequestFault)]
        if not any(fault.concerns(methods) for fault in single):
            response = self._forward(request)
            return Reply(response.data, response.status)
        answers = [self._answer_call(call) for call in calls]
        return Reply(json.dumps(answers if isinstance(request, list) else answers[0]).encode())

    def _answer_call(self, call: dict[str, Any]) -> dict[str, Any]:
        method = call["method"]
        if swap := self._take(ResultSwap, [method]):
            return {"jsonrpc": "2.0", "id": call["id"], "result": swap.result}
        if lie := self._take(LieFault, [method]):
            answer = self._ask(call)
            try:
                told = lie.tell(list(call.get("params", [])), answer.get("result"))
            except NodeError as error:
                return _error(call, {"code": error.code, "message": str(error)})
            # A true error stays an error.
            return answer if told == answer.get("result") else {"jsonrpc": "2.0", "id": call["id"], "result": told}
        if refusal := self._take(RpcFault, [method], lambda fault: fault.when(call.get("params", []))):
            said = {"code": refusal.code, "message": refusal.message}
            return _error(call, said if refusal.data is None else {**said, "data": refusal.data})
        if method == "eth_getLogs":
            return self._logs(call)
        if stale := self._take(StaleFault, [method]):
            return self._stale(call, stale.blocks)
        return self._ask(call)

    def _stale(self, call: dict[str, Any], behind: int) -> dict[str, Any]:
        head = int(self._ask({**call, "method": "eth_blockNumber", "params": []})["result"], 16)
        seen = max(head - behind, 0)
        if call["method"] == "eth_blockNumber":
            return {"jsonrpc": "2.0", "id": call["id"], "result": hex(seen)}
        block, *rest = call["params"]
        if block == "latest":
            return self._ask({**call, "params": [hex(seen), *rest]})
        if block.startswith("0x") and int(block, 16) > seen:
            return {"jsonrpc": "2.0", "id": call["id"], "result": None}
        return self._ask(call)

    def _logs(self, call: dict[str, Any]) -> dict[str, Any]:
        criteria = call["params"][0]
        first, last = (criteria.get(key, "") for key in ("fromBlock", "toBlock"))
        if first.startswith("0x") and last.startswith("0x"):
            width = int(last, 16) - int(first, 16) + 1
            if refusal := self._take(RangeFault, ["eth_getLogs"], lambda fault: width > fault.blocks):
                message = refusal.message.format(blocks=refusal.blocks)
                return _error(call, {"code": refusal.code, "message": message})
        answer = self._ask(call)
        logs = answer.get("result") or []
        if limit := self._take(ResultFault, ["eth_getLogs"], lambda fault: len(logs) > fault.logs):
            return _error(call, _too_many(limit, logs, first))
        if logs and (lost := self._take(LostLogsFault, ["eth_getLogs"])):
            answer["result"] = logs[: -lost.logs]
        return answer

    def _ask(self, call: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._forward(call).data)
        return answer

    def _forward(self, request: Any) -> urllib3.BaseHTTPResponse:
        return self._http.request("POST", self._upstream, body=json.dumps(request).encode(), headers=self._headers)


def _error(call: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call["id"], "error": error}


def _too_many(fault: ResultFault, logs: list[dict[str, Any]], first: str) -> dict[str, Any]:
    """The refusal in Infura's words; the suggested range ends before the block of the first log too many."""
    message = f"query returned more than {fault.logs} results"
    if not fault.is_suggesting:
        return {"code": -32005, "message": message}
    last = hex(int(logs[fault.logs]["blockNumber"], 16) - 1)
    return {
        "code": -32005,
        "message": f"{message}. Try with this block range [{first}, {last}].",
        "data": {"from": first, "to": last, "limit": fault.logs},
    }
