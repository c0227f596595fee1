"""JSON-RPC calls over HTTP: retries, fail-over, pacing, batches. Callers interpret the results."""

import functools
import itertools
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

import msgspec

from control.errors import shortened
from pipelines.extract.budget import Budget
from pipelines.extract.errors import (
    BudgetSpent,
    CallRefused,
    ExtractError,
    MalformedAnswer,
    NodeUnreachable,
    RangeRefused,
    RateLimited,
    StateUnavailable,
    WrongChain,
)
from pipelines.extract.jsonrpc.endpoint import Endpoint
from pipelines.extract.jsonrpc.faults import Fault, FaultKind
from pipelines.extract.metering import Meter
from warehouse.transport import AnswerTooLarge, Reply, TransportFault

T = TypeVar("T")
Call: TypeAlias = tuple[str, Sequence[Any]]
Attempt: TypeAlias = Callable[[Endpoint, float], T]

# Hosted providers accept 100 to 1,000 calls in one body; one that accepts fewer says so, and the client adapts.
_BATCH_CALLS = 100
# The beginning of an error is enough to classify it; the log shows less of it.
_LONGEST_MESSAGE = 2_000
_LOGGED_CHARACTERS = 300
_ENDPOINT_STATUSES = range(300, 500)
# Contracts call each other up to 1,024 deep, and a trace has two levels of JSON for each call.
_DEEPEST_JSON = 3_000
_MIB = 1024 * 1024
# Limits of an answer, decompressed. Up to 4 answers are read at once: 4 times 64 MiB, or 4 times 128 MiB while the logs
# or traces of single blocks are read.
SMALL_ANSWER = 4 * _MIB
"""Limit of a header, a number, a balance, or the code of a contract; a header names all transactions of its block."""
ANSWER = 64 * _MIB
"""Limit of a batch, a block with its transactions, or the results of many calls of contracts."""
LARGE_ANSWER = 128 * _MIB
"""Limit of the logs or the traces of a single block, which cannot be requested in parts."""


class _Error(msgspec.Struct):
    """The error of an answer, as received: providers send any type in any field."""

    code: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()

    def number(self) -> int:
        """Return the code, 0 where there is none."""
        found = _CODE.fullmatch(_beginning(self.code))
        return int(found[1]) if found else 0

    def text(self) -> str:
        """Return the message, or else the data, cut."""
        return _text(self.message) or _text(self.data) or "no message"


class _Answer(msgspec.Struct):
    """One JSON-RPC answer. A `Raw` field is a view of the answer's bytes, and is not decoded yet."""

    id: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()

    def is_of(self, number: int) -> bool:
        """Return whether the answer has the id `number`."""
        return _beginning(self.id) == str(number).encode()

    def has_id(self) -> bool:
        """Return whether the answer has an id."""
        return _beginning(self.id) not in _NOTHING

    def has_error(self) -> bool:
        """Return whether the answer has an error."""
        return _beginning(self.error) not in _NOTHING


class _EndpointRefused(CallRefused):
    """This URL refuses every call, at least from us; the next URL may accept them."""


class Classify(Protocol):
    """Classifier of a provider's errors."""

    def __call__(self, method: str, status: int, code: int | None, message: str, data: bytes = b"") -> Fault:
        """Return the meaning of an error.

        Args:
            method: method that was called.
            status: HTTP status.
            code, message, data: of the JSON-RPC error, data as received; code None where the body held none.
        """


@dataclass(frozen=True)
class Dialect:
    """The differences between families that use JSON-RPC.

    Attributes:
        chain_call: its result identifies the chain.
        chain_of: the identity of a network's definition, from that result.
        classify: the meaning of an error.
        blocks_of: the block range of a call, first and last included, where its parameters name one.
        ranged: methods that are repeated with less if their answer is too large.
    """

    chain_call: Call
    chain_of: Callable[[str], str]
    classify: Classify
    blocks_of: Callable[[Call], tuple[int, int] | None]
    ranged: frozenset[str] = frozenset()


class _BatchRefused(Exception):
    """The provider did not answer this batch call by call; `is_size`: only because this batch was too large."""

    def __init__(self, *, is_size: bool) -> None:
        super().__init__()
        self.is_size = is_size


@dataclass(frozen=True)
class _Asked:
    """The names that an error contains."""

    network: str
    method: str
    from_block: int | None
    to_block: int | None

    def names(self) -> tuple[str, str, int | None, int | None]:
        return self.network, self.method, self.from_block, self.to_block


# Errors that one call of a batch may cause alone.
_OF_ONE_CALL = (CallRefused, StateUnavailable, MalformedAnswer)
_NOTHING = (b"", b"null")
_SPACES = b" \t\r\n"
_CODE = re.compile(rb'"?(-?[0-9]{1,18})"?')
_SINGLE = msgspec.json.Decoder(_Answer)
_ERROR = msgspec.json.Decoder(_Error)
_MAKING_DECODERS = threading.Lock()


class RpcClient:
    """A network's node, behind one or several URLs; thread-safe.

    Connection failures, time-outs, HTTP 429 and 5xx, answers cut off and rate limits are retried with exponential
    back-off and full jitter; other JSON-RPC errors never. After a URL's last attempt the client switches to the next
    one, and continues to use it. All threads of a client share its places, its pace and its meter.

    Args:
        network: name for errors.
        urls: tried in this order; keys in them are never shown.
        dialect: how the family's nodes name their chain, and word their errors.
        timeout: seconds to connect, and to wait for the next bytes.
        max_attempts: per URL.
        max_in_flight: concurrent requests.
        max_response_bytes: of one answer, decompressed, where the caller names no other limit.
        max_seconds: limit of one call including retries; shared among the URLs.
        budget: of all calls together; None: without bound.
        sleep, clock: replaced in tests.
    """

    def __init__(
        self,
        network: str,
        urls: Sequence[str],
        dialect: Dialect,
        *,
        timeout: tuple[float, float] = (5.0, 30.0),
        max_attempts: int = 6,
        max_in_flight: int = 4,
        max_response_bytes: int = ANSWER,
        max_seconds: float = 120.0,
        budget: Budget | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not urls:
            raise ValueError(f"{network}: no RPC URL")
        self.network = network
        self._dialect = dialect
        self.max_in_flight = max_in_flight
        self.meter = Meter()
        self.budget = budget
        self._endpoints = [
            Endpoint(url, _name(number, len(urls)), timeout, max_in_flight, sleep, clock)
            for number, url in enumerate(urls, 1)
        ]
        self._active = 0
        self._max_attempts = max_attempts
        self._max_response_bytes = max_response_bytes
        self._max_seconds = max_seconds
        self.clock = clock
        self._places = threading.BoundedSemaphore(max_in_flight)
        self._ids = itertools.count(1)
        self._batch_calls = _BATCH_CALLS
        self._chain: str | None = None
        # Seconds, where a call names no other patience; None: the client's limits.
        self.patience: float | None = None

    @property
    def provider(self) -> str:
        """Host of the URL in use, with its port where the URL names one; without user, path and query."""
        return self._endpoints[self._active].label

    def expect_chain(self, chain: str) -> None:
        """Require every URL to serve this chain; check each before its next use.

        Calls raise WrongChain where a URL serves another chain.
        """
        self._chain = chain
        for endpoint in self._endpoints:
            endpoint.is_chain_checked = False

    def close(self) -> None:
        """Close the kept connections."""
        for endpoint in self._endpoints:
            endpoint.close()

    @overload
    def call(
        self,
        method: str,
        params: Sequence[Any],
        type_: type[T],
        *,
        max_response_bytes: int | None = None,
        retry_timeouts: bool = True,
        patience: float | None = None,
    ) -> T: ...

    @overload
    def call(
        self,
        method: str,
        params: Sequence[Any],
        type_: Any,
        *,
        max_response_bytes: int | None = None,
        retry_timeouts: bool = True,
        patience: float | None = None,
    ) -> Any: ...

    def call(
        self,
        method: str,
        params: Sequence[Any],
        type_: Any,
        *,
        max_response_bytes: int | None = None,
        retry_timeouts: bool = True,
        patience: float | None = None,
    ) -> Any:
        """Call one method.

        Args:
            type_: type to which msgspec decodes the result.
            max_response_bytes: replaces the client's limit.
            retry_timeouts: False where the caller prefers to narrow the request.
            patience: seconds without a byte of the answer, and of the whole call with its retries; replaces the
                client's limits. The budget holds anyway.

        Raises:
            ExtractError: any of its kinds but ChainReorganised.
        """
        asked = self._asked([(method, params)])
        patience = self.patience if patience is None else patience
        limit = self._max_response_bytes if max_response_bytes is None else max_response_bytes

        def attempt(endpoint: Endpoint, deadline: float) -> Any:
            return self._ask_once(endpoint, deadline, (method, params), asked, type_, limit, patience)

        return self._exchange(asked, attempt, retry_timeouts, patience)

    @overload
    def batch(
        self,
        calls: Sequence[Call],
        type_: type[T],
        allow_errors: Literal[False] = False,
        *,
        max_response_bytes: int | None = None,
        retry_timeouts: bool = True,
        patience: float | None = None,
    ) -> list[T]: ...

    @overload
    def batch(
        self,
        calls: Sequence[Call],
        type_: type[T],
        allow_errors: Literal[True],
        *,
        max_response_bytes: int | None = None,
        retry_timeouts: bool = True,
        patience: float | None = None,
    ) -> list[T | CallRefused | StateUnavailable | MalformedAnswer]: ...

    @overload
    def batch(
        self,
        calls: Sequence[Call],
        type_: Any,
        allow_errors: bool = False,
        *,
        max_response_bytes: int | None = None,
        retry_timeouts: bool = True,
        patience: float | None = None,
    ) -> list[Any]: ...

    def batch(
        self,
        calls: Sequence[Call],
        type_: Any,
        allow_errors: bool = False,
        *,
        max_response_bytes: int | None = None,
        retry_timeouts: bool = True,
        patience: float | None = None,
    ) -> list[Any]:
        """Call many methods in few requests, and one by one where the provider takes no batches.

        Args:
            type_: type to which msgspec decodes each result.
            allow_errors: return CallRefused, StateUnavailable and MalformedAnswer of single calls as results instead of
                raising them.
            max_response_bytes: of the answer to one call; replaces the client's limit. Batches are split where their
                answer is larger.
            retry_timeouts, patience: of each request; as `call`.

        Returns:
            The results in the order of the calls.

        Raises:
            ExtractError: as `call`; also MalformedAnswer where an answer is missing, appears twice or is not ours.
        """
        results: list[Any] = []
        patience = self.patience if patience is None else patience
        size = self._batch_calls
        limit = self._max_response_bytes if max_response_bytes is None else max_response_bytes
        while len(results) < len(calls):
            size = min(size, self._batch_calls)
            piece = calls[len(results) : len(results) + size]
            if len(piece) == 1:
                results.append(self._call_in_batch(piece[0], type_, allow_errors, limit, retry_timeouts, patience))
                continue
            try:
                results += self._call_together(piece, type_, allow_errors, retry_timeouts, patience)
            except _BatchRefused as refusal:
                size = len(piece) // 2
                if not refusal.is_size:
                    self._batch_calls = size
        return results

    def _call_in_batch(
        self,
        call: Call,
        type_: Any,
        allow_errors: bool,
        max_bytes: int,
        retry_timeouts: bool,
        patience: float | None,
    ) -> Any:
        try:
            return self.call(
                *call, type_, max_response_bytes=max_bytes, retry_timeouts=retry_timeouts, patience=patience
            )
        except _OF_ONE_CALL as error:
            if allow_errors:
                return error
            raise

    def _call_together(
        self,
        calls: Sequence[Call],
        type_: Any,
        allow_errors: bool,
        retry_timeouts: bool,
        patience: float | None,
    ) -> list[Any]:
        asked = self._asked(calls)
        results: dict[int, Any] = {}
        pending = {next(self._ids): position for position in range(len(calls))}

        def attempt(endpoint: Endpoint, deadline: float) -> None:
            body = msgspec.json.encode([_request(number, calls[position]) for number, position in pending.items()])
            try:
                reply = self._post(endpoint, body, deadline, self._max_response_bytes, asked, len(pending), patience)
            except AnswerTooLarge:
                raise _BatchRefused(is_size=True) from None
            answers = self._read_batch(endpoint, reply, asked, len(pending))
            answered = {number: answer for answer in answers for number in pending if answer.is_of(number)}
            if not len(answers) == len(answered) == len(pending):
                detail = f"{endpoint.name}: the ids of a batch of {len(pending)} came back missing, twice or foreign"
                raise MalformedAnswer(*asked.names(), detail)
            delayed: RateLimited | NodeUnreachable | None = None
            for number, answer in answered.items():
                call = calls[pending[number]]
                try:
                    result = self._read_answer(endpoint, answer, reply, self._asked([call]), type_)
                except (RateLimited, NodeUnreachable) as error:
                    delayed = error
                    continue
                except _EndpointRefused:
                    raise
                except _OF_ONE_CALL as error:
                    result = error
                results[pending.pop(number)] = result
            if delayed is not None:
                raise delayed

        self._exchange(asked, attempt, retry_timeouts, patience)
        ordered = [results[position] for position in range(len(calls))]
        if not allow_errors:
            for result in ordered:
                if isinstance(result, ExtractError):
                    raise result
        return ordered

    def _exchange(
        self, asked: _Asked, attempt: Attempt[T], retry_timeouts: bool = True, patience: float | None = None
    ) -> T:
        self._check_budget(asked)
        try:
            return self._ask_endpoints(asked, attempt, retry_timeouts, patience or self._max_seconds)
        except (NodeUnreachable, RateLimited) as error:
            self._check_budget(asked, error.words)
            raise

    def _check_budget(self, asked: _Asked, words: str = "") -> None:
        overrun = None if self.budget is None else self.budget.overrun()
        if overrun is not None:
            spent = BudgetSpent(*asked.names(), overrun)
            spent.words = words
            raise spent

    def _ask_endpoints(self, asked: _Asked, attempt: Attempt[T], retry_timeouts: bool, max_seconds: float) -> T:
        deadline = self.clock() + max_seconds
        if self.budget is not None:
            deadline = min(deadline, self.budget.deadline)
        count = len(self._endpoints)
        first = self._active
        failures: list[str] = []
        words: list[str] = []
        for turn in range(count):
            index = (first + turn) % count
            now = self.clock()
            share = now + (deadline - now) / (count - turn)
            try:
                result = self._persist(self._endpoints[index], asked, attempt, share, retry_timeouts)
            except (NodeUnreachable, RateLimited, _EndpointRefused) as error:
                failures.append(error.detail)
                words += [error.words] if error.words else []
                is_slow = isinstance(error, NodeUnreachable) and error.timed_out and not retry_timeouts
                if is_slow or turn + 1 == count:
                    error.detail, error.words = "; ".join(failures), "; ".join(words)
                    raise
            else:
                self._active = index
                return result
        raise AssertionError("a client has at least one endpoint")

    def _persist(
        self, endpoint: Endpoint, asked: _Asked, attempt: Attempt[T], deadline: float, retry_timeouts: bool
    ) -> T:
        def ask() -> T:
            self._check_chain(endpoint, deadline, asked)
            return attempt(endpoint, deadline)

        def too_long(detail: str) -> RateLimited:
            return RateLimited(*asked.names(), f"{endpoint.name}: {detail}")

        return endpoint.pacer.persist(
            ask, too_long, most_attempts=self._max_attempts, deadline=deadline, retry_timeouts=retry_timeouts
        )

    def _check_chain(self, endpoint: Endpoint, deadline: float, asked: _Asked) -> None:
        if self._chain is None or endpoint.is_chain_checked:
            return
        call = self._dialect.chain_call
        answered = self._ask_once(endpoint, deadline, call, self._asked([call]), str, SMALL_ANSWER)
        chain = self._dialect.chain_of(answered)
        if chain != self._chain:
            detail = f"{endpoint.name} serves chain {shortened(ascii(chain)[1:-1])}, not {self._chain} as configured"
            raise WrongChain(self.network, call[0], detail=detail)
        endpoint.is_chain_checked = True

    def _ask_once(
        self,
        endpoint: Endpoint,
        deadline: float,
        call: Call,
        asked: _Asked,
        type_: Any,
        max_bytes: int,
        patience: float | None = None,
    ) -> Any:
        number = next(self._ids)
        body = msgspec.json.encode(_request(number, call))
        try:
            reply = self._post(endpoint, body, deadline, max_bytes, asked, patience=patience)
        except AnswerTooLarge:
            detail = f"{endpoint.name}: the answer is larger than {max_bytes} bytes"
            kind = RangeRefused if asked.method in self._dialect.ranged else MalformedAnswer
            raise kind(*asked.names(), detail) from None
        try:
            answer = _decode(_SINGLE, reply.body)
        except msgspec.DecodeError as error:
            raise self._unreadable(endpoint, reply, asked, error) from None
        if not answer.has_error() and answer.result and not answer.is_of(number):
            raise MalformedAnswer(*asked.names(), f"{endpoint.name}: the answer to another call")
        return self._read_answer(endpoint, answer, reply, asked, type_)

    def _post(
        self,
        endpoint: Endpoint,
        body: bytes,
        deadline: float,
        max_bytes: int,
        asked: _Asked,
        calls: int = 1,
        patience: float | None = None,
    ) -> Reply:
        with self._places:
            self.meter.sent(calls)
            try:
                reply = endpoint.post(body, deadline, max_bytes, patience)
            except TransportFault as fault:
                detail = f"{endpoint.name}: {fault.reason}"
                raise NodeUnreachable(*asked.names(), detail, timed_out=fault.timed_out) from None
            except AnswerTooLarge:
                self._received(max_bytes)
                raise
        self._received(len(reply.body))
        return reply

    def _received(self, answer_bytes: int) -> None:
        self.meter.received(answer_bytes)
        if self.budget is not None:
            self.budget.received(answer_bytes)

    def _read_batch(self, endpoint: Endpoint, reply: Reply, asked: _Asked, calls: int) -> list[_Answer]:
        try:
            if reply.body[:_LONGEST_MESSAGE].lstrip(_SPACES).startswith(b"["):
                filled = msgspec.structs.astuple(_decode(_batch_decoder(calls), reply.body))
                answers = [answer for answer in filled if answer is not None]
            else:
                answers = [_decode(_SINGLE, reply.body)]
        except msgspec.DecodeError as error:
            unreadable = self._unreadable(endpoint, reply, asked, error)
            if isinstance(unreadable, CallRefused) and not isinstance(unreadable, _EndpointRefused):
                raise _BatchRefused(is_size=reply.status == 413) from None
            raise unreadable from None
        if answers and all(answer.has_id() for answer in answers):
            return answers
        # An error without an id is about the batch as a whole.
        for answer in answers:
            if answer.has_error():
                refusal = self._error(endpoint, answer.error, reply, asked)
                if isinstance(refusal, RateLimited | NodeUnreachable | _EndpointRefused):
                    raise refusal
        raise _BatchRefused(is_size=reply.status == 413)

    def _read_answer(self, endpoint: Endpoint, answer: _Answer, reply: Reply, asked: _Asked, type_: Any) -> Any:
        if answer.has_error():
            raise self._error(endpoint, answer.error, reply, asked)
        if not answer.result:
            if reply.status != 200:
                raise self._http_error(endpoint, reply, asked)
            raise MalformedAnswer(*asked.names(), f"{endpoint.name}: neither result nor error in the answer")
        try:
            return _decode(decoder_of(type_), answer.result)
        except msgspec.DecodeError as error:
            raise MalformedAnswer(*asked.names(), f"{endpoint.name}: {error}") from None

    def _unreadable(self, endpoint: Endpoint, reply: Reply, asked: _Asked, error: msgspec.DecodeError) -> ExtractError:
        if reply.status != 200:
            return self._http_error(endpoint, reply, asked)
        if isinstance(error, msgspec.ValidationError):
            return MalformedAnswer(*asked.names(), f"{endpoint.name}: {error}")
        return NodeUnreachable(*asked.names(), f"{endpoint.name}: the answer was cut off or is not JSON")

    def _http_error(self, endpoint: Endpoint, reply: Reply, asked: _Asked) -> ExtractError:
        text = bytes(reply.body[:_LONGEST_MESSAGE]).decode("utf-8", "replace").strip()
        message = f"HTTP {reply.status}" + (f" {text}" if text and not text.startswith("<") else "")
        return self._of_fault(endpoint, self._dialect.classify(asked.method, reply.status, None, message), reply, asked)

    def _error(self, endpoint: Endpoint, error: msgspec.Raw, reply: Reply, asked: _Asked) -> ExtractError:
        if _beginning(error).startswith(b"{"):
            read = _decode(_ERROR, error)
            data = _beginning(read.data)
            fault = self._dialect.classify(asked.method, reply.status, read.number(), read.text(), data)
        else:
            fault = self._dialect.classify(asked.method, reply.status, None, _text(error))
        return self._of_fault(endpoint, fault, reply, asked)

    def _of_fault(self, endpoint: Endpoint, fault: Fault, reply: Reply, asked: _Asked) -> ExtractError:
        words = endpoint.redact(fault.message)[:_LOGGED_CHARACTERS]
        error = self._error_of(endpoint, fault, words, reply, asked)
        error.words = words
        return error

    def _error_of(self, endpoint: Endpoint, fault: Fault, words: str, reply: Reply, asked: _Asked) -> ExtractError:
        names = asked.names()
        said = f"code {fault.code}" if fault.code is not None else f"HTTP status {reply.status}"
        detail = f"{endpoint.name} {fault.kind.value} ({said})"
        match fault.kind:
            case FaultKind.RATE_LIMITED:
                return RateLimited(*names, detail, retry_after=reply.retry_after)
            case FaultKind.RANGE_REFUSED:
                return RangeRefused(*names, detail, suggested=fault.suggested)
            case FaultKind.TRANSIENT if reply.retry_after is not None:
                return RateLimited(*names, detail, retry_after=reply.retry_after)
            case FaultKind.TRANSIENT:
                return NodeUnreachable(*names, detail)
            case FaultKind.STATE_UNAVAILABLE:
                return StateUnavailable(*names, detail)
            case FaultKind.REFUSED:
                is_endpoint = reply.status in (401, 403, 404) or (
                    fault.code is None and reply.status in _ENDPOINT_STATUSES and reply.status not in (400, 405, 413)
                )
                kind = _EndpointRefused if is_endpoint else CallRefused
                return kind(*names, detail, code=fault.code, message=words)

    def _asked(self, calls: Sequence[Call]) -> _Asked:
        ranges = [blocks for call in calls if (blocks := self._dialect.blocks_of(call)) is not None]
        first = min((first for first, _ in ranges), default=None)
        last = max((last for _, last in ranges), default=None)
        return _Asked(self.network, calls[0][0], first, last)


def _name(number: int, count: int) -> str:
    """Return the name of a URL in errors. Tenants read errors, so the name has no host."""
    return "the node" if count == 1 else f"node {number} of {count}"


def _beginning(raw: msgspec.Raw) -> bytes:
    return bytes(memoryview(raw)[:_LONGEST_MESSAGE])


def _text(raw: msgspec.Raw) -> str:
    """Return the first characters of a provider's message, of any JSON type; empty if there is none."""
    beginning = _beginning(raw)
    if beginning in _NOTHING:
        return ""
    if len(raw) == len(beginning):
        try:
            return msgspec.json.decode(beginning, type=str)
        except msgspec.DecodeError:
            pass  # another type: return its JSON
    return beginning.decode("utf-8", "replace")


def _request(number: int, call: Call) -> dict[str, Any]:
    method, params = call
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _decode(decoder: msgspec.json.Decoder[T], encoded: bytearray | msgspec.Raw) -> T:
    """Decode JSON, even if it is nested deeper than Python's default limit.

    Raises:
        msgspec.DecodeError: it is no JSON, not of the type, or nested deeper than any answer can be.
    """
    try:
        return decoder.decode(encoded)
    except RecursionError:
        # Any transaction may have so deep a trace: it must not stop the collection of a network.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST_JSON))
    try:
        return decoder.decode(encoded)
    except RecursionError:
        raise msgspec.ValidationError("the answer is nested too deeply") from None


@functools.lru_cache(maxsize=_BATCH_CALLS)
def _batch_decoder(calls: int) -> msgspec.json.Decoder[Any]:
    """Return a decoder of a batch of at most `calls` answers, which refuses a longer batch before decoding all of it.

    A list would be decoded first and counted afterwards; a list of empty objects takes 24 times its bytes.
    """
    fields = [(f"answer_{number}", _Answer | None, None) for number in range(calls)]
    answers = msgspec.defstruct(f"Batch{calls}", fields, array_like=True, forbid_unknown_fields=True)
    return msgspec.json.Decoder(answers)


def decoder_of(type_: Any) -> msgspec.json.Decoder[Any]:
    """Return a decoder of JSON to a type, made once; threads may call this at the same time."""
    # msgspec 0.22 ends the process by a segmentation fault if two threads use a struct for the first time.
    with _MAKING_DECODERS:
        return _make_decoder(type_)


@functools.lru_cache(maxsize=64)
def _make_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)
