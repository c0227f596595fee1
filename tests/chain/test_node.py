"""The node: it mines on request, keeps old states, reverts to snapshots, and never outlives its parent."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
import urllib3

from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode, NodeError
from tests.chain.process import free_port

# It tests a tool of the tests.
pytestmark = pytest.mark.release


def test_options_are_in_force() -> None:
    with AnvilNode(chain_id=77, genesis_time=GENESIS_TIME, gas_limit=50_000_000, base_fee=7) as node:
        assert node.rpc("eth_chainId") == hex(77)
        block = node.rpc("eth_getBlockByNumber", ["0x0", False])
        assert int(block["timestamp"], 16) == GENESIS_TIME
        assert int(block["gasLimit"], 16) == 50_000_000
        assert int(block["baseFeePerGas"], 16) == 7


def test_blocks_come_only_when_mined_and_at_the_given_time(node: AnvilNode) -> None:
    node.rpc("eth_sendTransaction", [{"from": "0x" + "1" * 40, "to": "0x" + "2" * 40, "gasPrice": "0x0"}])
    assert (node.rpc("anvil_getAutomine"), node.rpc("anvil_getIntervalMining")) == (False, None)
    assert node.head() == 0
    assert node.mine(GENESIS_TIME + 100) == 1
    assert len(node.rpc("eth_getBlockByNumber", ["0x1", False])["transactions"]) == 1
    # The node's own clock does not matter.
    node.rpc("evm_increaseTime", [3600])
    assert node.mine_empty(5, 12) == 6
    assert [node.block_time(number) - GENESIS_TIME for number in (1, 2, 6)] == [100, 112, 160]


def test_revert_goes_back_to_the_snapshot(node: AnvilNode) -> None:
    snapshot = node.snapshot()
    node.set_balance("0x" + "3" * 40, 5)
    node.mine()
    node.revert(snapshot)
    assert node.head() == 0
    assert node.rpc("eth_getBalance", ["0x" + "3" * 40, "latest"]) == "0x0"
    with pytest.raises(NodeError, match="no snapshot"):
        node.revert("0x99")


def test_an_error_names_the_method(node: AnvilNode) -> None:
    with pytest.raises(NodeError, match="eth_nothing") as caught:
        node.rpc("eth_nothing")
    assert caught.value.code == -32601


def test_batches_keep_their_order(node: AnvilNode) -> None:
    node.mine_empty(30, 12)
    blocks = node.batch([("eth_getBlockByNumber", [hex(number), False]) for number in range(31)], size=7)
    assert [int(block["number"], 16) for block in blocks] == list(range(31))


def test_old_states_stay_readable(node: AnvilNode) -> None:
    giver, taker = "0x" + "3" * 40, "0x" + "4" * 40
    node.set_balance(giver, 10**18)
    for _ in range(600):
        node.rpc("eth_sendTransaction", [{"from": giver, "to": taker, "value": "0x1", "gasPrice": "0x0"}])
        node.mine()
    answers = node.batch([("eth_getBalance", [taker, hex(number)]) for number in range(601)])
    assert [int(answer, 16) for answer in answers] == list(range(601))


def test_stop_ends_the_process_and_frees_the_port() -> None:
    node = AnvilNode()
    node.start()
    process = psutil.Process(node.pid)
    node.stop()
    assert not process.is_running()
    with pytest.raises(urllib3.exceptions.HTTPError):
        urllib3.request("POST", node.url, body=b"{}", retries=False)
    node.stop()


def test_a_failed_start_says_why() -> None:
    with pytest.raises(NodeError, match="nonsense"):
        AnvilNode(hardfork="nonsense").start()


def test_the_node_dies_with_a_killed_parent() -> None:
    program = (
        "import json, time\n"
        "from tests.chain.node import AnvilNode\n"
        "node = AnvilNode()\n"
        "node.start()\n"
        "print(json.dumps(node.pid), flush=True)\n"
        "time.sleep(900)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        node = psutil.Process(json.loads(parent.stdout.readline()))
        os.kill(parent.pid, signal.SIGKILL)
        psutil.wait_procs([node])
        assert not node.is_running() or node.status() == psutil.STATUS_ZOMBIE


def test_free_port_takes_another_when_the_preferred_one_is_taken(node: AnvilNode) -> None:
    assert free_port(node.port) != node.port
    unused = free_port()
    assert free_port(unused) == unused
