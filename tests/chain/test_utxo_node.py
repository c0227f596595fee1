"""The UTXO node: it mines on request at chosen times, keeps its data, can be pruned, and never outlives its parent."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psutil
import pytest
import urllib3

from tests.chain import utxo_node
from tests.chain.node import NodeError
from tests.chain.utxo_node import UtxoNode, base_units
from tests.chain.utxo_world import UtxoWorld

# It tests a tool of the tests.
pytestmark = pytest.mark.release

START = 1_650_000_000
# An address of regtest: the miner of a world.
MINER = "rltc1qq6hag67dl53wl99vzg42z8eyzfz2xlkvsmqqf9"


@pytest.fixture
def node() -> Iterator[UtxoNode]:
    with UtxoNode(start_time=START, step_seconds=60) as running:
        yield running


@pytest.fixture(scope="module")
def mined() -> Iterator[UtxoNode]:
    """A node with 30 blocks, for tests that only read."""
    with UtxoNode() as running:
        running.mine(MINER, 30)
        yield running


def test_blocks_come_only_when_mined_and_at_the_given_times(node: UtxoNode) -> None:
    assert node.head() == 0
    assert node.mine(MINER, 20) == 20
    assert [node.block_time(height) - START for height in (1, 2, 20)] == [0, 60, 19 * 60]
    assert node.take_time(START + 86_400) == START + 86_400
    node.mine(MINER)
    assert node.block_time(21) == START + 86_400 + 60
    assert [block["height"] for block in node.blocks(3, 20)] == list(range(3, 21))


def test_a_chain_may_begin_at_its_genesis_time() -> None:
    with UtxoNode(start_time=utxo_node.REGTEST_GENESIS_TIME + 1) as node:
        node.mine(MINER)
        assert node.block_time(0) == utxo_node.REGTEST_GENESIS_TIME
        assert node.block_time(1) == utxo_node.REGTEST_GENESIS_TIME + 1


def test_mweb_stays_off_unless_wanted(node: UtxoNode) -> None:
    node.mine(MINER, 440)
    forks = node.rpc("getblockchaininfo")["softforks"]
    assert (forks["mweb"]["active"], forks["taproot"]["active"]) == (False, True)


def test_amounts_are_exact(mined: UtxoNode) -> None:
    value = mined.block(1)["tx"][0]["vout"][0]["value"]
    assert isinstance(value, Decimal)
    assert base_units(value) == 50 * 10**8
    assert base_units(Decimal("0.00000001")) == 1
    with pytest.raises(ValueError, match="not a whole number"):
        base_units(Decimal("0.000000001"))


def test_an_error_names_the_method(mined: UtxoNode) -> None:
    with pytest.raises(NodeError, match="getnothing") as caught:
        mined.rpc("getnothing")
    assert caught.value.code == -32601
    with pytest.raises(NodeError, match="getblockhash") as caught:
        mined.batch([("getblockhash", [30]), ("getblockhash", [31])])
    assert caught.value.code == -8


def test_batches_keep_their_order(mined: UtxoNode) -> None:
    hashes = mined.batch([("getblockhash", [height]) for height in range(31)], size=7)
    assert hashes == [block["hash"] for block in mined.blocks(0, 30)]


def test_the_address_has_user_and_password(node: UtxoNode) -> None:
    body = json.dumps({"method": "getblockcount", "params": [], "id": 1})
    parts = urllib3.util.parse_url(node.url)
    assert urllib3.request("POST", f"http://{parts.netloc}/", body=body).status == 401
    headers = urllib3.make_headers(basic_auth=parts.auth)
    answer = urllib3.request("POST", f"http://{parts.netloc}/", body=body, headers=headers)
    assert answer.json()["result"] == 0
    # That client's open connection does not delay a restart for long.
    began = time.monotonic()
    node.restart()
    assert time.monotonic() - began < 15


def test_transactions_are_indexed_on_request(mined: UtxoNode) -> None:
    txid = mined.block(1)["tx"][0]["txid"]
    assert mined.rpc("getrawtransaction", txid, True)["txid"] == txid
    with UtxoNode(txindex=False) as node:
        node.mine(MINER)
        with pytest.raises(NodeError, match="-txindex"):
            node.rpc("getrawtransaction", node.block(1)["tx"][0]["txid"], True)


def test_a_restart_keeps_blocks_port_and_clock(node: UtxoNode) -> None:
    node.mine(MINER, 5)
    url, newest, pid = node.url, node.block_hash(5), node.pid
    node.restart()
    assert (node.url, node.block_hash(5)) == (url, newest)
    assert node.pid != pid
    node.mine(MINER)
    assert node.block_time(6) == START + 5 * 60
    with pytest.raises(NodeError, match="running already"):
        node.start()


def test_a_killed_node_loses_the_blocks_since_the_last_flush(node: UtxoNode) -> None:
    node.mine(MINER, 5)
    node.flush()
    node.mine(MINER, 3)
    lost = node.block_hash(6)
    node.kill()
    with pytest.raises(NodeError, match="not running"):
        node.head()
    node.start()
    assert node.head() == 5
    node.mine(MINER, 3)
    assert node.block_hash(6) != lost


def test_a_node_prunes_on_request_alone() -> None:
    with UtxoNode(txindex=False, prune=True) as node:
        node.mine(MINER, 5)
        assert node.rpc("getblockchaininfo")["pruned"]
        assert node.block(1)["nTx"] == 1
        with pytest.raises(NodeError, match="too short for pruning"):
            node.rpc("pruneblockchain", 3)
    with pytest.raises(ValueError, match="txindex=False"):
        UtxoNode(prune=True)


# The node deletes files of 128 MiB: this takes 5 s.
def test_a_pruned_node_lacks_old_blocks() -> None:
    with UtxoNode(txindex=False, prune=True) as node:
        world = UtxoWorld(node)
        filled = world.grow(140)
        node.mine(MINER, 1001 - filled)
        node.rpc("pruneblockchain", filled)
        info = node.rpc("getblockchaininfo")
        assert info["pruned"]
        assert 100 < info["pruneheight"] < filled
        with pytest.raises(NodeError, match="pruned data") as caught:
            node.block(50)
        assert caught.value.code == -1
        assert node.block(info["pruneheight"])["nTx"] == 1
        # Headers stay.
        assert node.block_time(50) > START


def test_close_ends_the_process_and_deletes_its_data(node: UtxoNode) -> None:
    process, folder = psutil.Process(node.pid), node.folder
    node.close()
    assert not process.is_running()
    assert not folder.exists()
    with pytest.raises(NodeError, match="no data"):
        node.folder.exists()
    node.close()


def test_a_failed_start_says_why(mined: UtxoNode) -> None:
    with pytest.raises(NodeError, match="Unable to bind"):
        UtxoNode(port=mined.port).start()


def test_a_missing_binary_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeError, match="tests/debian-packages"):
        UtxoNode().start()


def test_the_node_dies_with_a_killed_parent() -> None:
    program = (
        "import json, time\n"
        "from tests.chain.utxo_node import UtxoNode\n"
        "node = UtxoNode()\n"
        "node.start()\n"
        "print(json.dumps([node.pid, str(node.folder)]), flush=True)\n"
        "time.sleep(900)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid, folder = json.loads(parent.stdout.readline())
        node = psutil.Process(pid)
        os.kill(parent.pid, signal.SIGKILL)
        psutil.wait_procs([node])
        assert not node.is_running() or node.status() == psutil.STATUS_ZOMBIE
    shutil.rmtree(folder)
