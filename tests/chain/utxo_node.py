"""A real node of a UTXO chain (litecoind, regtest) on a free loopback port. It mines only on request.

The module has the process and plain JSON-RPC. Keys, payments and reorganisations are in `utxo_world`.
"""

import itertools
import json
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

from tests.chain.node import NodeError
from tests.chain.process import free_port, stop_process, tied_to_parent
from tests.waiting import PATIENCE_SECONDS

BASE_UNITS = 10**8
# Time of regtest's genesis block, Unix seconds.
REGTEST_GENESIS_TIME = 1_296_688_602

_USER = "tests"
_SHARED_MEMORY = Path("/dev/shm")
# The node waits for its clients' connections to end, up to 30 s.
_STOP_SECONDS = 1
_REPLY_SECONDS = 120


def litecoind_binary() -> str:
    """Return the path of the node's binary.

    Raises:
        NodeError: it is not installed; the message says how to install it.
    """
    found = shutil.which("litecoind")
    if found is None:
        raise NodeError("the Debian package `litecoind` is not installed: run tests/debian-packages")
    return found


def base_units(coins: Decimal | int) -> int:
    """Convert an amount of the node's JSON, in coins, to base units.

    Raises:
        ValueError: the amount has more than 8 decimals.
    """
    amount = Decimal(coins) * BASE_UNITS
    if amount != int(amount):
        raise ValueError(f"{coins} coins are not a whole number of base units")
    return int(amount)


class _Connection(urllib3.connection.HTTPConnection):
    """A connection that acknowledges replies at once.

    The node holds the end of a reply of several kilobytes back until the client acknowledges the start, which Linux
    delays by 40 ms.
    """

    def getresponse(self) -> Any:
        # The kernel leaves this mode by itself, so each reply needs it again.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return super().getresponse()


class _ConnectionPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class UtxoNode:
    """A running node; a context manager that stops it and deletes its data.

    The node's clock stands still: `mine` sets it for each block. The network has the addresses of Litecoin's regtest,
    and taproot is active from the genesis block. The extension MWEB stays off unless `mweb` is true: once it is active,
    at height 432, the node mines no block without a payment into it.

    Args:
        txindex: index all transactions, for `getrawtransaction` of any transaction.
        prune: allow `pruneblockchain`; excludes `txindex`.
        start_time: time of block 1, Unix seconds; at least that of the genesis block.
        step_seconds: seconds between blocks.
        mweb: activate MWEB at height 432, and run a wallet, which alone can pay into it.
        port: to listen on; default: a free one. It stays the same after a restart.
    """

    def __init__(
        self,
        *,
        txindex: bool = True,
        prune: bool = False,
        start_time: int = 1_700_000_000,
        step_seconds: int = 150,
        mweb: bool = False,
        port: int | None = None,
    ) -> None:
        if prune and txindex:
            raise ValueError("a pruned node has no index of transactions: pass txindex=False")
        self.port = port or free_port()
        # A node that has the port already does not accept this password.
        self._password = secrets.token_hex(8)
        self.url = f"http://{_USER}:{self._password}@127.0.0.1:{self.port}"
        self.step_seconds = step_seconds
        self._clock = start_time
        self._next_time = start_time
        self._options = [
            *("-regtest", "-server", "-listen=0", "-dnsseed=0", "-discover=0", "-par=1"),
            *("-nodebuglogfile", "-printtoconsole"),
            *("-rpcbind=127.0.0.1", "-rpcallowip=127.0.0.1", f"-rpcport={self.port}"),
            *(f"-rpcuser={_USER}", f"-rpcpassword={self._password}"),
            *("-rpcworkqueue=1000", "-rpcthreads=4", "-acceptnonstdtxn"),
            f"-txindex={int(txindex)}",
            *(("-prune=1",) if prune else ()),
            # A start in the year 9999 keeps the extension off.
            *(("-keypool=1",) if mweb else ("-disablewallet", "-vbparams=mweb:253370764800:253402300799")),
        ]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._http: _ConnectionPool | None = None
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The process

    def start(self) -> None:
        """Start the node on its data, or on an empty chain, and wait until it answers.

        Raises:
            NodeError: it ended or did not answer in time; the message contains its output.
        """
        if self._process is not None:
            raise NodeError("the node is running already")
        binary = litecoind_binary()
        is_new = self._folder is None
        if self._folder is None:
            parent = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
            self._folder = tempfile.TemporaryDirectory(prefix="litecoind-", dir=parent)
        output = self.folder / "output.log"
        with output.open("wb") as sink:
            self._process = subprocess.Popen(
                tied_to_parent([binary, f"-datadir={self.folder}", f"-mocktime={self._clock}", *self._options]),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                # An interrupt typed in a terminal reaches the whole group; the node must not end before its users.
                start_new_session=True,
            )
        self._http = _ConnectionPool(
            "127.0.0.1",
            self.port,
            maxsize=4,
            retries=False,
            timeout=_REPLY_SECONDS,
            headers={
                **urllib3.make_headers(basic_auth=f"{_USER}:{self._password}"),
                "Content-Type": "application/json",
            },
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                # The node answers with an error while it loads its blocks, and loads the mempool after them.
                if self.rpc("getmempoolinfo")["loaded"]:
                    return
            except (urllib3.exceptions.HTTPError, NodeError):
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    printed = output.read_text(errors="replace")[-2000:]
                    self.kill()
                    if is_new:
                        self.close()
                    state = "ended" if ended else f"did not answer within {PATIENCE_SECONDS:.0f} s"
                    raise NodeError(f"litecoind on port {self.port} {state}: {printed}") from None
            time.sleep(0.02)

    def stop(self) -> None:
        """End the node and wait for it; blocks and mempool stay. Do nothing if it is not running."""
        if self._process is not None:
            # On disk before the node ends, as connections of other clients may make it end by force.
            self.flush()
            self.rpc("savemempool")
            self._disconnect()
            stop_process(self._process, grace_seconds=_STOP_SECONDS)
            self._process = None

    def kill(self) -> None:
        """Kill the node with SIGKILL; its data stay as they are on disk.

        The node loses all blocks since the last `flush` or orderly stop, and its mempool.
        """
        self._disconnect()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Stop the node and start it on the same data and port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End the node and delete its data."""
        self.kill()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def pid(self) -> int:
        """Process id of the running node."""
        if self._process is None:
            raise NodeError("the node is not running")
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Folder with the node's data."""
        if self._folder is None:
            raise NodeError("the node has no data: it was never started, or is closed")
        return Path(self._folder.name)

    # Calls

    def rpc(self, method: str, *params: Any) -> Any:
        """Call one method and return its result; numbers with a point are Decimal.

        Raises:
            NodeError: the node answered with an error; holds its code.
        """
        return self._result(self._post(self._call(method, params)), method)

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]], size: int = 500) -> list[Any]:
        """Call many methods in JSON-RPC batches of at most `size`; the node runs them in this order.

        Raises:
            NodeError: any of them was answered with an error.
        """
        results: list[Any] = []
        for start in range(0, len(calls), size):
            bodies = [self._call(method, params) for method, params in calls[start : start + size]]
            answers = {answer["id"]: answer for answer in self._post(bodies)}
            results.extend(self._result(answers[body["id"]], body["method"]) for body in bodies)
        return results

    def head(self) -> int:
        """Return the height of the newest block."""
        return int(self.rpc("getblockcount"))

    def block_hash(self, height: int) -> str:
        """Return the hash of a block of the active chain."""
        return str(self.rpc("getblockhash", height))

    def block_time(self, height: int) -> int:
        """Return the timestamp of a block of the active chain, Unix seconds."""
        return int(self.rpc("getblockheader", self.block_hash(height))["time"])

    def block(self, height: int) -> dict[str, Any]:
        """Return a block of the active chain with its transactions, as `getblock` with verbosity 2 does."""
        answer: dict[str, Any] = self.rpc("getblock", self.block_hash(height), 2)
        return answer

    def blocks(self, first: int, last: int) -> list[dict[str, Any]]:
        """Return blocks `first` to `last`, both included, like `block`."""
        hashes = self.batch([("getblockhash", [height]) for height in range(first, last + 1)])
        return self.batch([("getblock", [block_hash, 2]) for block_hash in hashes], size=100)

    # Time and blocks

    def take_time(self, timestamp: int | None = None) -> int:
        """Set the node's clock to the next block's time and return that, Unix seconds.

        Args:
            timestamp: later than the median of the newest 11 blocks; default: `step_seconds` after the latest block.
                It may be earlier than the latest block, as on real chains. The clock never goes back.
        """
        chosen = self._next_time if timestamp is None else timestamp
        self._advance(chosen)
        self.rpc("setmocktime", self._clock)
        return chosen

    def mine(self, address: str, blocks: int = 1, *, mempool: bool = True) -> int:
        """Mine blocks `step_seconds` apart and return the height of the last one.

        Args:
            address: receives subsidy and fees.
            blocks: their number.
            mempool: include the mempool's transactions; otherwise the blocks have only their coinbase.
        """
        calls: list[tuple[str, Sequence[Any]]] = []
        for _ in range(blocks):
            self._advance(self._next_time)
            calls.append(("setmocktime", [self._clock]))
            calls.append(("generatetoaddress", [1, address]) if mempool else ("generateblock", [address, []]))
        self.batch(calls)
        return self.head()

    def flush(self) -> None:
        """Write the node's whole state to disk, so that `kill` loses no block before this."""
        self.rpc("gettxoutsetinfo", "none")

    def _advance(self, chosen: int) -> None:
        self._clock = max(self._clock, chosen)
        self._next_time = self._clock + self.step_seconds

    def _disconnect(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def _call(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        return {"jsonrpc": "1.0", "id": next(self._ids), "method": method, "params": list(params)}

    def _post(self, body: Any) -> Any:
        if self._http is None:
            raise NodeError("the node is not running")
        response = self._http.request("POST", "/", body=json.dumps(body).encode())
        try:
            return json.loads(response.data, parse_float=Decimal)
        except ValueError:
            # A refusal of the HTTP server: wrong password, or a full queue.
            raise NodeError(f"HTTP {response.status}: {response.data[:200]!r}") from None

    @staticmethod
    def _result(answer: dict[str, Any], method: str) -> Any:
        error = answer["error"]
        if error is not None:
            raise NodeError(f"{method}: {error['message']}", error["code"])
        return answer["result"]
