"""A main network with proof of work: blocks that a node invents for free are refused."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from pipelines.extract.utxo.definition import own_definition
from tests.chain.mined_chain import COINBASE, HARD, TRIVIAL, MinedChain
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalUtxoNetwork, Service

SCRIPT = bytes.fromhex("0014") + bytes(20)
UNMET = 0x1D00FFFF
HONEST = 30


@pytest.fixture
def chain() -> Iterator[MinedChain]:
    with MinedChain() as running:
        running.mine(HARD, HONEST - 3)
        yield running


class Case:
    """A tracked wallet on a main network, after a cycle."""

    def __init__(self, chain: MinedChain, make_service: MakeService) -> None:
        self.chain = chain
        network = LocalUtxoNetwork(
            "local", chain.url, proof_of_work="sha256d", genesis_hash=chain.hash_of(0), is_testnet=False
        )
        self.service: Service = make_service(network)
        chain.mine(HARD, 3, script=SCRIPT)
        opened = datetime.fromtimestamp(1_700_000_000 + 600 * (HONEST - 10), UTC) + timedelta(seconds=1)
        wallet = own_definition(self.service.networks["local"]).address_of(SCRIPT)
        assert wallet is not None
        self.service.wallet(self.service.tenant(), wallet, tracked_from=opened)
        self.service.good_cycle()

    def check(self) -> None:
        """Assert that headers and rows are those of the chain."""
        blocks = self.service.query("select block_number, block_hash from raw.blocks order by all")
        assert blocks[-1][0] == len(self.chain.blocks) - 1
        assert [(number, self.chain.hash_of(number)) for number, _ in blocks] == blocks
        rows = self.service.query("select block_number, received_raw::varchar from raw.utxo_transactions order by all")
        assert rows == [(number, str(COINBASE)) for number in range(HONEST - 3, len(self.chain.blocks))]


@pytest.mark.ci
@pytest.mark.proof("invented blocks without proof of work are refused")
@pytest.mark.parametrize(
    ("bits", "has_work", "blocks", "words"),
    [
        (UNMET, False, 8, "a header without proof of work (sha256d): its hash is above its target"),
        (TRIVIAL, True, 8, f"block {HONEST} needed too little work"),
        # Too many to be read together with the headers before them.
        (TRIVIAL, True, 40, f"needed too little work: its target is too easy after that of block {HONEST - 11}"),
    ],
    ids=["target_missed", "target_too_easy", "many_blocks"],
)
def test_invented_blocks_without_work_are_refused_and_nothing_is_stored(
    bits: int, has_work: bool, blocks: int, words: str, chain: MinedChain, make_service: MakeService
) -> None:
    case = Case(chain, make_service)
    chain.mine(bits, blocks, script=SCRIPT, has_work=has_work)
    report = case.service.cycle()
    assert report.error is not None
    assert words in report.error
    assert case.service.query("select status, detail from raw.network_states") == [("Unreachable", report.error)]
    chain.cut(HONEST)
    case.check()
    chain.mine(HARD, 2, script=SCRIPT)
    case.service.good_cycle()
    case.check()
