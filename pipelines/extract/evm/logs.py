"""ERC-20 Transfer events: requests range by range, decoding column by column.

Other modules decide how a transfer changes balances, and read the metadata of tokens.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from pipelines.extract.errors import (
    CallRefused,
    ChainReorganised,
    MalformedAnswer,
    NodeUnreachable,
    RangeRefused,
    StateUnavailable,
)
from pipelines.extract.evm.chunks import BlockRange, RangePlanner
from pipelines.extract.evm.contracts import event_topic
from pipelines.extract.jsonrpc.client import LARGE_ANSWER, Call, RpcClient
from pipelines.tables.sources import TABLES

TRANSFER_TOPIC = event_topic("Transfer(address,address,uint256)")
# Addresses or topics in one request; providers accept between some hundreds and some thousands.
_ALTERNATIVES = 200
# Answers of a good size have 1 to 6 MB.
_ANSWER_BYTES = 32 * 1024 * 1024
_TIMEOUTS_IN_A_ROW = 1
_TOPICS = 3
_WORD_LENGTH = 66
_ADDRESS_PADDING = "0x" + 24 * "0"

_SCHEMA = TABLES["token_transfers"].schema_without("network", "batch_id")
# On some networks, indexes of logs repeat in a block.
_ORDER = ("block_number", "transaction_index", "log_index")
# The number of digits is bounded by the columns' integer types.
_WORD_FORM = "^0x[0-9a-f]{64}$"
_ADDRESS_FORM = "^0x[0-9a-f]{40}$"
_NUMBER_FORM = "^0x[0-9a-f]{1,15}$"
_INDEX_FORM = "^0x[0-9a-f]{1,7}$"
_PADDED_ADDRESS_FORM = "^0x0{24}[0-9a-f]{40}$"
# Forms of a transfer. Matching is the most expensive check, so values that repeat from log to log are matched once.
_REPEATED_FORMS = {
    "block_number": _NUMBER_FORM,
    "block_hash": _WORD_FORM,
    "transaction_hash": _WORD_FORM,
    "token_address": _ADDRESS_FORM,
    "from_topic": _PADDED_ADDRESS_FORM,
    "to_topic": _PADDED_ADDRESS_FORM,
}
_OTHER_FORMS = {
    "transaction_index": _INDEX_FORM,
    "log_index": _INDEX_FORM,
    "data": _WORD_FORM,
}
# Forms of any log, matched one by one.
_BLOCK_NUMBER = re.compile(r"0x[0-9a-f]{1,15}", re.IGNORECASE)
_INDEX = re.compile(r"0x[0-9a-f]{1,7}", re.IGNORECASE)
_WORD = re.compile(r"0x[0-9a-f]{64}", re.IGNORECASE)
_ADDRESS = re.compile(r"0x[0-9a-f]{40}", re.IGNORECASE)
_BYTES = re.compile(r"0x(?:[0-9a-f]{2})*", re.IGNORECASE)


class Topics(msgspec.Struct, gc=False, array_like=True, forbid_unknown_fields=True):
    """Topics of a log: at most four, so that decoding stops at the fifth; a list would be decoded completely first."""

    first: str | msgspec.UnsetType = msgspec.UNSET
    second: str | msgspec.UnsetType = msgspec.UNSET
    third: str | msgspec.UnsetType = msgspec.UNSET
    fourth: str | msgspec.UnsetType = msgspec.UNSET

    def present(self) -> list[str]:
        """Return the topics that are present, in order."""
        return [topic for topic in msgspec.structs.astuple(self) if topic is not msgspec.UNSET]


class Log(msgspec.Struct, gc=False, rename="camel"):
    """A JSON-RPC log, hex as received."""

    address: str
    topics: Topics
    data: str
    block_number: str
    block_hash: str
    transaction_hash: str
    transaction_index: str
    log_index: str
    removed: bool = False


_LOGS = msgspec.json.Decoder(list[Log])


@dataclass(frozen=True)
class TransferFilter:
    """Filter of transfers: a transfer matches if all the given sets apply.

    Addresses are lower-case. None matches any address; an empty set matches none, and no request is sent.
    """

    tokens: frozenset[str] | None = None
    senders: frozenset[str] | None = None
    recipients: frozenset[str] | None = None


@dataclass(frozen=True)
class Transfers:
    """The transfers in a range of blocks, both ends included, complete for the whole filter.

    Attributes:
        rows: columns of raw.token_transfers without network and batch_id, in the order of `_ORDER`.
        ignored: logs with the event's first topic that are not ERC-20 transfers, such as those of ERC-721.
    """

    from_block: int
    to_block: int
    rows: pl.DataFrame
    ignored: int


def fetch_transfers(
    client: RpcClient,
    filter: TransferFilter | Sequence[TransferFilter],
    from_block: int,
    to_block: int,
    *,
    max_range: int | None = None,
    in_flight: int = 4,
) -> Iterator[Transfers]:
    """Fetch the transfers of a range of blocks, in pieces that the provider answers.

    Args:
        filter: the transfers to fetch; of several filters, each transfer that matches at least one, once.
        from_block, to_block: both included.
        max_range: widest range that the provider is known to accept; None to find it by trial.
        in_flight: pieces fetched ahead at most.

    Yields:
        Consecutive pieces in block order, together exactly the range, also where they are empty. Memory is bounded
        by the pieces in flight, not by the range.

    Raises:
        RangeRefused: the provider refused a single block, which cannot be narrowed.
        ChainReorganised: the answers hold removed logs, or two hashes for one block.
        ExtractError: other errors of the client.
    """
    filters = [filter] if isinstance(filter, TransferFilter) else filter
    asks = [ask for one in filters for ask in split_filter(one)]
    if not asks:
        if from_block <= to_block:
            yield Transfers(from_block, to_block, pl.DataFrame(schema=_SCHEMA), 0)
        return
    planner = RangePlanner(from_block, to_block, max_range)
    running: dict[Future[list[msgspec.Raw]], BlockRange] = {}
    fetched: dict[int, Transfers] = {}
    position = from_block
    # One at a time until an answer shows how many logs a request returns.
    places = 1
    timeouts = 0
    pool = ThreadPoolExecutor(in_flight, thread_name_prefix="logs")
    try:
        while position <= to_block:
            # Submit the earliest piece first: all later ones wait for it, so it must never lack a place.
            while planner.next_block is not None and len(running) + len(fetched) < places:
                piece = planner.take()
                running[pool.submit(_ask_piece, client, asks, piece)] = piece
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                piece = running.pop(future)
                try:
                    answers = future.result()
                except (RangeRefused, CallRefused, StateUnavailable) as refusal:
                    # The cause may be the range, in any words.
                    if piece[0] == piece[1]:
                        raise
                    planner.refused(piece, refusal.suggested if isinstance(refusal, RangeRefused) else None)
                    continue
                except NodeUnreachable as error:
                    timeouts += 1
                    if not error.timed_out or piece[0] == piece[1] or timeouts > _TIMEOUTS_IN_A_ROW:
                        raise
                    planner.refused(piece)
                    continue
                timeouts = 0
                places = in_flight
                transfers = _read_piece(client.network, asks, piece, answers)
                planner.succeeded(piece, transfers.rows.height + transfers.ignored)
                fetched[piece[0]] = transfers
            while position in fetched:
                transfers = fetched.pop(position)
                position = transfers.to_block + 1
                yield transfers
    finally:
        pool.shutdown(cancel_futures=True)


def fetch_blocks(client: RpcClient, blocks: Sequence[tuple[TransferFilter, int, str]]) -> pl.DataFrame:
    """Fetch the transfers of single blocks by hash: a node that lacks a block then fails instead of returning none.

    Args:
        blocks: for each, a filter that fits into one request (see `split_filter`), number and hash.

    Returns:
        Columns of raw.token_transfers without network and batch_id, in the order of `_ORDER`. A transfer that
        matches several of the filters appears once.

    Raises:
        StateUnavailable: the node does not know the block.
        MalformedAnswer: a log belongs to another block or is malformed.
    """
    calls: list[Call] = [("eth_getLogs", [{"blockHash": hash_} | _criteria(ask)]) for ask, _, hash_ in blocks]
    frames = [pl.DataFrame(schema=_SCHEMA)]
    for (ask, number, hash_), answer in zip(blocks, client.batch(calls, msgspec.Raw), strict=True):
        rows = _read_piece(client.network, [ask], (number, number), [answer]).rows
        if (rows["block_hash"] != hash_).any():
            detail = f"logs of another block than {hash_}"
            raise MalformedAnswer(client.network, "eth_getLogs", number, number, detail)
        frames.append(rows)
    return pl.concat(frames).unique().sort(_ORDER)


def split_filter(filter: TransferFilter) -> list[TransferFilter]:
    """Split a filter into parts that each fit into one request; each matching transfer matches exactly one part."""
    parts = (_parts(filter.tokens), _parts(filter.senders), _parts(filter.recipients))
    return [TransferFilter(*alternatives) for alternatives in itertools.product(*parts)]


def _parts(addresses: frozenset[str] | None) -> Iterable[frozenset[str] | None]:
    if addresses is None:
        return [None]
    ordered = sorted(addresses)
    return [frozenset(ordered[start : start + _ALTERNATIVES]) for start in range(0, len(ordered), _ALTERNATIVES)]


def _criteria(ask: TransferFilter) -> dict[str, Any]:
    """Return the criteria of a request for logs, without the blocks."""
    topics: list[str | list[str] | None] = [TRANSFER_TOPIC, _topics(ask.senders), _topics(ask.recipients)]
    while topics[-1] is None:
        topics.pop()
    addresses = {} if ask.tokens is None else {"address": sorted(ask.tokens)}
    return addresses | {"topics": topics}


def _topics(addresses: Iterable[str] | None) -> list[str] | None:
    return None if addresses is None else [padded_address(address) for address in sorted(addresses)]


def padded_address(address: str) -> str:
    """Return an address in the form of a topic."""
    return _ADDRESS_PADDING + address[2:]


def _ask_piece(client: RpcClient, asks: Sequence[TransferFilter], piece: BlockRange) -> list[msgspec.Raw]:
    blocks = {"fromBlock": hex(piece[0]), "toBlock": hex(piece[1])}
    is_single = piece[0] == piece[1]
    max_bytes = LARGE_ANSWER if is_single else _ANSWER_BYTES
    return [
        client.call(
            "eth_getLogs",
            [blocks | _criteria(ask)],
            msgspec.Raw,
            max_response_bytes=max_bytes,
            retry_timeouts=False,
        )
        for ask in asks
    ]


def _read_piece(
    network: str, asks: Sequence[TransferFilter], piece: BlockRange, answers: Sequence[msgspec.Raw]
) -> Transfers:
    """Decode the answers for a piece, in the consuming thread.

    Decoding in several threads was measured to cost some 10 percent more CPU, and memory for each thread.
    """
    frames: list[pl.DataFrame] = []
    ignored = 0
    for ask, answer in zip(asks, answers, strict=True):
        try:
            logs = _LOGS.decode(answer)
        except msgspec.DecodeError as error:
            raise MalformedAnswer(network, "eth_getLogs", *piece, str(error)) from None
        frames.append(_in_order(_Decoder(network, piece, ask).decode(logs), network, piece))
        ignored += len(logs) - frames[-1].height
    # A log that matches two filters appears twice and equal. If the two differ, the check of the order fails.
    rows = frames[0] if len(frames) == 1 else _in_order(pl.concat(frames).unique(), network, piece)
    return Transfers(*piece, rows, ignored)


def decode_transfers(logs: Sequence[Log], network: str, from_block: int, to_block: int) -> pl.DataFrame:
    """Decode ERC-20 Transfer logs into rows of raw.token_transfers, without network and batch_id.

    Args:
        logs: logs with the event's first topic, in any order, hex as received.
        network: for errors.
        from_block, to_block: the requested range, both included.

    Returns:
        One row per ERC-20 transfer, in the order of `_ORDER`; amount_raw in base units, 0 to 2**256 - 1, as decimal
        text. Logs of other shapes (four topics: ERC-721) are left out.

    Raises:
        MalformedAnswer: hex is malformed, a log lies outside the range or appears twice; names the log.
        ChainReorganised: a log is marked as removed, or a block has two hashes.

    Source: https://eips.ethereum.org/EIPS/eip-20
    """
    piece = (from_block, to_block)
    return _in_order(_Decoder(network, piece, TransferFilter()).decode(logs), network, piece)


@dataclass(frozen=True)
class _Decoder:
    """Decodes the answer to one request, and checks it against the request."""

    network: str
    piece: BlockRange
    ask: TransferFilter

    def decode(self, logs: Sequence[Log]) -> pl.DataFrame:
        """Return rows of raw.token_transfers in the order of the logs, all of them checked."""
        transfers, texts = self._transfers(logs)
        amounts = pl.Series("amount_raw", [str(int(log.data, 16)) for log in transfers], dtype=pl.String)
        return texts.select(
            _integer("block_number", pl.Int64),
            pl.col("block_hash"),
            _integer("transaction_index", pl.Int32),
            pl.col("transaction_hash"),
            _integer("log_index", pl.Int32),
            pl.col("token_address"),
            from_address=_address("from_topic"),
            to_address=_address("to_topic"),
            amount_raw=amounts,
        )

    def _transfers(self, logs: Sequence[Log]) -> tuple[Sequence[Log], pl.DataFrame]:
        """Return the transfers among the logs, as received and as columns of lower-case text."""
        if _are_plain(logs):
            texts = _texts(logs)
            if all(texts.select(self._checks()).row(0)):
                return logs, texts
        # Some logs are not plain transfers: an error, another kind of event, or upper-case hex.
        for log in logs:
            self._check(log)
        transfers = [log for log in logs if _is_transfer(log)]
        return transfers, _texts(transfers).with_columns(pl.all().str.to_lowercase())

    def _checks(self) -> Iterator[pl.Expr]:
        """Yield expressions, each one truth value, that check that all rows are transfers and match the request."""
        for name, form in _REPEATED_FORMS.items():
            yield pl.col(name).unique().str.contains(form).all()
        for name, form in _OTHER_FORMS.items():
            yield pl.col(name).str.contains(form).all()
        first, last = self.piece
        yield _integer("block_number", pl.Int64).is_between(first, last).all().alias("is_in_range")
        for name, addresses, padding in (
            ("token_address", self.ask.tokens, "0x"),
            ("from_topic", self.ask.senders, _ADDRESS_PADDING),
            ("to_topic", self.ask.recipients, _ADDRESS_PADDING),
        ):
            if addresses is not None:
                asked = [padding + address[2:] for address in addresses]
                yield pl.col(name).is_in(asked).all().alias(f"is_asked_{name}")

    def _check(self, log: Log) -> None:
        is_well_formed = (
            _BLOCK_NUMBER.fullmatch(log.block_number)
            and _INDEX.fullmatch(log.transaction_index)
            and _INDEX.fullmatch(log.log_index)
            and _ADDRESS.fullmatch(log.address)
            and _BYTES.fullmatch(log.data)
            and all(map(_WORD.fullmatch, (log.block_hash, log.transaction_hash, *log.topics.present())))
        )
        if not is_well_formed:
            # The error does not quote the log: it may hold any text, and tenants read errors.
            raise MalformedAnswer(self.network, "eth_getLogs", *self.piece, "a log is not well-formed")
        if log.removed:
            number = int(log.block_number, 16)
            detail = f"block {number} left the chain while its logs were read"
            raise ChainReorganised(self.network, "eth_getLogs", *self.piece, detail, block_number=number)
        topics = [topic.lower() for topic in log.topics.present()]
        is_asked = topics[:1] == [TRANSFER_TOPIC] and self.piece[0] <= int(log.block_number, 16) <= self.piece[1]
        if self.ask.tokens is not None:
            is_asked &= log.address.lower() in self.ask.tokens
        for position, addresses in enumerate((self.ask.senders, self.ask.recipients), start=1):
            if addresses is not None:
                is_asked &= len(topics) > position and "0x" + topics[position][26:] in addresses
        if not is_asked:
            named = f"log {log.log_index} of transaction {log.transaction_hash} of block {log.block_number}"
            raise MalformedAnswer(self.network, "eth_getLogs", *self.piece, f"{named} was not requested")


def _are_plain(logs: Sequence[Log]) -> bool:
    """Return whether all logs have the event's first topic and two more; check nothing else."""
    return (
        {log.topics.first for log in logs} <= {TRANSFER_TOPIC}
        and not any(log.topics.third is msgspec.UNSET or log.topics.fourth is not msgspec.UNSET for log in logs)
        and not any(log.removed for log in logs)
    )


def _is_transfer(log: Log) -> bool:
    """Return whether a checked log is an ERC-20 transfer: two addresses in topics, one number in data."""
    topics = log.topics.present()
    return (
        len(topics) == _TOPICS
        and len(log.data) == _WORD_LENGTH
        and all(topic.startswith(_ADDRESS_PADDING) for topic in topics[1:])
    )


def _texts(logs: Sequence[Log]) -> pl.DataFrame:
    columns = {
        "block_number": [log.block_number for log in logs],
        "block_hash": [log.block_hash for log in logs],
        "transaction_index": [log.transaction_index for log in logs],
        "transaction_hash": [log.transaction_hash for log in logs],
        "log_index": [log.log_index for log in logs],
        "token_address": [log.address for log in logs],
        "from_topic": [log.topics.second for log in logs],
        "to_topic": [log.topics.third for log in logs],
        "data": [log.data for log in logs],
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _integer(name: str, type_: type[pl.Int32 | pl.Int64]) -> pl.Expr:
    return pl.col(name).str.slice(2).str.to_integer(base=16, dtype=type_, strict=False)


def _address(topic: str) -> pl.Expr:
    return pl.concat_str(pl.lit("0x"), pl.col(topic).str.slice(26))


def _in_order(rows: pl.DataFrame, network: str, piece: BlockRange) -> pl.DataFrame:
    """Return rows in their order; check that no block has two hashes and that no log appears twice."""
    block, transaction, log = (pl.col(name) for name in _ORDER)
    is_same_block = block == block.shift(1)
    is_same_transaction = is_same_block & (transaction == transaction.shift(1))
    is_later = (
        (block > block.shift(1))
        | (is_same_block & (transaction > transaction.shift(1)))
        | (is_same_transaction & (log > log.shift(1)))
    )
    is_other_hash = is_same_block & (pl.col("block_hash") != pl.col("block_hash").shift(1))
    if rows.select(is_later.all() & ~is_other_hash.any()).item():
        return rows
    rows = rows.sort(_ORDER)
    for number in rows.filter(is_other_hash)["block_number"].head(1):
        detail = f"block {number} changed while its logs were read: it has two hashes"
        raise ChainReorganised(network, "eth_getLogs", *piece, detail, block_number=number)
    for row in rows.filter(~is_later).head(1).iter_rows(named=True):
        place = f"log {row['log_index']} of transaction {row['transaction_index']} of block {row['block_number']}"
        detail = f"{place} appears twice"
        raise MalformedAnswer(network, "eth_getLogs", *piece, detail)
    return rows
