"""A real EVM node (anvil) on a free loopback port that only mines on request.

The module has the process and plain JSON-RPC. Contracts, wallets and transfers are in `world`.
"""

import itertools
import json
import platform
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

from tests.chain.process import free_port, stop_process, tied_to_parent
from tests.waiting import PATIENCE_SECONDS

_PACKAGES = Path(__file__).parents[2] / "node_modules" / "@foundry-rs"
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class NodeError(Exception):
    """The node could not be started, or answered a call with an error."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def anvil_binary() -> Path:
    """Return the node's native binary from node_modules.

    Raises:
        NodeError: it is not installed; the message says how to install it.
    """
    machine = platform.machine().lower()
    package = f"anvil-{platform.system().lower()}-{_MACHINES.get(machine, machine)}"
    binary = _PACKAGES / package / "bin" / "anvil"
    if not binary.is_file():
        raise NodeError(f"@foundry-rs/{package} is not installed: run `npm ci` in the project's folder")
    return binary


class AnvilNode:
    """A running node; a context manager that always stops it.

    Every sender is unlocked: a transaction may come from any address. Only `mine` makes blocks, with transactions in
    the order of sending. The states of some 3,600 blocks stay readable.

    Args:
        chain_id: answer of eth_chainId.
        genesis_time: timestamp of block 0, Unix seconds; default: now.
        gas_limit: of a block; the default has room for 50 million Transfer events.
        hardfork: name as anvil spells it.
        base_fee: wei per gas in the first block; zero means that only transfers change balances.
        port: to listen on; default: a free one.
    """

    def __init__(
        self,
        *,
        chain_id: int = 31337,
        genesis_time: int | None = None,
        gas_limit: int = 100_000_000_000,
        hardfork: str = "prague",
        base_fee: int = 0,
        port: int | None = None,
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._options = [
            *("--chain-id", str(chain_id)),
            *("--gas-limit", str(gas_limit)),
            *("--hardfork", hardfork),
            *("--block-base-fee-per-gas", str(base_fee)),
            *(("--timestamp", str(genesis_time)) if genesis_time is not None else ()),
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--accounts", "1", "--order", "fifo"),
            *("--no-mining", "--auto-impersonate", "--disable-min-priority-fee", "--disable-code-size-limit"),
            *("--no-request-size-limit",),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._http: urllib3.HTTPConnectionPool | None = None
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the binary and wait until it answers.

        Raises:
            NodeError: it ended or did not answer in time; the message contains its output.
        """
        binary = anvil_binary()
        self._folder = tempfile.TemporaryDirectory(prefix="anvil-")
        output = Path(self._folder.name) / "output.log"
        with output.open("wb") as sink:
            self._process = subprocess.Popen(
                # Old states spill to disk; kept out of the user's home and removed with the node.
                tied_to_parent([str(binary), *self._options, "--cache-path", self._folder.name]),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                # An interrupt typed in a terminal reaches the whole group; the node must not end before its users.
                start_new_session=True,
            )
        self._http = urllib3.HTTPConnectionPool(
            "127.0.0.1", self.port, maxsize=4, retries=False, timeout=PATIENCE_SECONDS
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.rpc("eth_blockNumber")
                return
            except urllib3.exceptions.HTTPError:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    printed = output.read_text(errors="replace")[-2000:]
                    self.stop()
                    state = "ended" if ended else f"did not answer within {PATIENCE_SECONDS:.0f} s"
                    raise NodeError(f"anvil on port {self.port} {state}: {printed}") from None
                time.sleep(0.02)

    def stop(self) -> None:
        """End the process and wait for it; do nothing if it is not running."""
        if self._http is not None:
            self._http.close()
            self._http = None
        if self._process is not None:
            stop_process(self._process, grace_seconds=3)
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def pid(self) -> int:
        """Process id of the running node."""
        if self._process is None:
            raise NodeError("the node is not running")
        return self._process.pid

    def rpc(self, method: str, params: Sequence[Any] = ()) -> Any:
        """Call one method and return its result.

        Raises:
            NodeError: the node answered with an error; holds its code.
        """
        return self._result(self._post(self._call(method, params)), method)

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]], size: int = 500) -> list[Any]:
        """Call many methods in JSON-RPC batches of at most `size`; results in the order of the calls.

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
        """Return the newest block's number."""
        return int(self.rpc("eth_blockNumber"), 16)

    def block_time(self, number: int) -> int:
        """Return a block's timestamp, Unix seconds."""
        return int(self.rpc("eth_getBlockByNumber", [hex(number), False])["timestamp"], 16)

    def mine(self, timestamp: int | None = None) -> int:
        """Mine one block with everything sent so far, and return its number.

        Args:
            timestamp: of the block, later than its parent's; default: the node's clock.
        """
        self.rpc("evm_mine", [] if timestamp is None else [timestamp])
        return self.head()

    def mine_empty(self, count: int, interval_seconds: int) -> int:
        """Mine `count` blocks, `interval_seconds` apart, and return the last one's number."""
        # By itself the node adds what passed since the newest block was mined.
        self.rpc("evm_setNextBlockTimestamp", [self.block_time(self.head()) + interval_seconds])
        self.rpc("anvil_mine", [hex(count), hex(interval_seconds)])
        return self.head()

    def set_code(self, address: str, runtime: str) -> None:
        """Put runtime bytecode (0x text) at an address."""
        self.rpc("anvil_setCode", [address, runtime])

    def set_balance(self, address: str, wei: int) -> None:
        """Set an address's native balance, without a transaction: that of the newest block, after the fact."""
        self.rpc("anvil_setBalance", [address, hex(wei)])

    def snapshot(self) -> str:
        """Remember the chain as it is; the answer is for `revert`."""
        return str(self.rpc("evm_snapshot"))

    def revert(self, snapshot: str) -> None:
        """Go back to a snapshot, which is used up by it.

        Raises:
            NodeError: there is no such snapshot.
        """
        if self.rpc("evm_revert", [snapshot]) is not True:
            raise NodeError(f"no snapshot {snapshot}")

    def _call(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": list(params)}

    def _post(self, body: Any) -> Any:
        if self._http is None:
            raise NodeError("the node is not running")
        response = self._http.request(
            "POST", "/", body=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )
        return json.loads(response.data)

    @staticmethod
    def _result(answer: dict[str, Any], method: str) -> Any:
        if "error" in answer:
            error = answer["error"]
            raise NodeError(f"{method}: {error['message']}", error["code"])
        return answer["result"]
