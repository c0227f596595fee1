"""Attestations: the supply and all unconfirmed balances are read at the end of a past block.

Tenants request them; with the setting, periods that ended get them automatically. A block is attested once it is final
and the models contain all known rows up to it. Balances are read part by part. Parts remain stored, so a killed slice
loses only its current part.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import NamedTuple

import duckdb
import polars as pl

from control.attestations import read_moment
from control.networks.definitions import Network
from pipelines.attestations.records import (
    Attestation,
    AttestationRequest,
    Period,
    begin_period,
    begin_requested,
    drop_unwanted,
    due_periods,
    finish_attestation,
    has_supply,
    is_built,
    list_balances,
    note_attestation_error,
    open_attestation_requests,
    open_attestations,
    record_period_end,
    refuse_attestation,
    set_request,
    store_part,
)
from pipelines.balances.readings import read_pending, with_tenants
from pipelines.chain.segments import Collector, NetworkReport, log_words, record_others
from pipelines.chain.states import SERVED, mark_over_budget, record_failure
from pipelines.extract.budget import Budget
from pipelines.extract.errors import BudgetSpent, CallRefused, ExtractError, StateUnavailable
from pipelines.extract.families import open_node
from pipelines.extract.family import PAST_BALANCES, Header, Node
from pipelines.extract.headers import header_of
from pipelines.raw.usage import read_budget
from pipelines.rows import UsageRecord, WorkClass

# Number of balances that are read and stored together.
PART = 2_000
# Number of periods that one slice begins with on a network.
_MOST_PERIODS = 500
_NO_ARCHIVE = "the network's node has no past states, so balances of the block cannot be read"


class Periods(NamedTuple):
    """Automatic attestations: the length of the periods, and the largest number of holders of their subjects."""

    length: Period
    most_holders: int


def collect_attestations(
    connection: duckdb.DuckDBPyConnection,
    networks: Mapping[str, Network],
    periods: Periods | None,
    batch_id: int,
    is_over: Callable[[], bool],
    on_progress: Callable[[], None],
    make_budget: Callable[[], Budget] | None = None,
) -> list[NetworkReport]:
    """Resolve new requests, begin due automatic attestations, and read until the time is over or nothing is left.

    If a network fails, its attestations keep their state and get the reason; the other networks continue. The same
    holds for a network without remaining requests: its node gets no call.

    Args:
        connection: the open warehouse, after a build of the models.
        networks: definitions of the networks to work on.
        periods: automatic attestations; None: there are none.
        batch_id: the slice's own batch, after the cycle's.
        is_over: called before each part; the slice ends when it returns True.
        on_progress: called after each part.
        make_budget: creates the budget of one network for one part; None: without bound.
    """
    reports = []
    for network in networks.values():
        requests = _end_cancelled(connection, network.name)
        drop_unwanted(connection, network.name)
        state = connection.execute(
            """
            select head_number, final_number, coalesce(list_contains(capabilities, ?), false)
            from raw.network_states
            where network = ? and list_contains(?, status)
            """,
            [PAST_BALANCES, network.name, SERVED],
        ).fetchone()
        if state is None or is_over() or _waits(connection, network.name):
            continue
        head_number, final_number, has_archive = state
        is_pending = any(request.block_number is None for request in requests) or open_attestations(
            connection, network.name
        )
        has_ended = has_archive and _due_periods(connection, network.name, periods, final_number)
        if not is_pending and not has_ended:
            continue
        budget = None if make_budget is None else make_budget()
        with closing(open_node(network, budget=budget)) as node:
            slice_ = _Slice(connection, node, final_number, batch_id, is_over, on_progress, budget)
            slice_.run(head_number, requests, periods)
            reports.append(slice_.report)
    return reports


def has_due_periods(
    connection: duckdb.DuckDBPyConnection, networks: Mapping[str, Network], periods: Periods | None
) -> bool:
    """Return whether the end of any period is due for an attestation."""
    states = connection.execute(
        """
        select network, final_number
        from raw.network_states
        where list_contains(?, status) and list_contains(capabilities, ?)
        """,
        [SERVED, PAST_BALANCES],
    )
    return any(
        name in networks and bool(_due_periods(connection, name, periods, final_number))
        for name, final_number in states.fetchall()
    )


def _due_periods(
    connection: duckdb.DuckDBPyConnection, network: str, periods: Periods | None, final_number: int
) -> list[tuple[int, datetime, int | None]]:
    if periods is None:
        return []
    return due_periods(connection, network, periods.length, periods.most_holders, final_number, _MOST_PERIODS)


def _end_cancelled(connection: duckdb.DuckDBPyConnection, network: str) -> list[AttestationRequest]:
    """End the cancelled requests, and return the others."""
    requests = open_attestation_requests(connection, network)
    for request in requests:
        if request.is_cancelled:
            set_request(connection, request, "Cancelled")
    return [request for request in requests if not request.is_cancelled]


def _waits(connection: duckdb.DuckDBPyConnection, network: str) -> bool:
    return read_budget(connection, network).waits_until is not None


class _Slice:
    """One network's share of a slice."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        node: Node,
        final_number: int,
        batch_id: int,
        is_over: Callable[[], bool],
        on_progress: Callable[[], None],
        budget: Budget | None,
    ) -> None:
        self._budget = budget
        self.connection = connection
        self.node = node
        self.network = node.network.name
        self.final_number = final_number
        self.batch_id = batch_id
        self.report = NetworkReport(self.network)
        self._is_over = is_over
        self._on_progress = on_progress

    def run(self, head_number: int, requests: Sequence[AttestationRequest], periods: Periods | None) -> None:
        """Make the pending attestations of the network while time and budget last."""
        try:
            capabilities = self.node.probe()
            head = header_of(self.node.headers([head_number]).row(0))
            collector = Collector(
                self.connection,
                self.node,
                capabilities,
                self.final_number,
                self.batch_id,
                self.report,
                WorkClass.ATTESTATION,
            )
            has_archive = PAST_BALANCES in capabilities
            for request in requests:
                if request.block_number is None and not self._stops():
                    self._resolve(collector, head, request, has_archive=has_archive)
            if has_archive:
                self._begin_periods(collector, head, periods)
            record_others(self.connection, self.node, WorkClass.ATTESTATION)
            for attestation in open_attestations(self.connection, self.network):
                if self._stops():
                    break
                if not self._attest(collector, attestation, has_archive=has_archive):
                    break
        except ExtractError as error:
            self._note(error)
            waiting = open_attestations(self.connection, self.network)
            note_attestation_error(self.connection, waiting, error.told_of(None, None))
            if isinstance(error, BudgetSpent):
                mark_over_budget(self.connection, self.network, error.told_of(None, None))
        finally:
            record_others(self.connection, self.node, WorkClass.ATTESTATION)
            self._on_progress()

    def _stops(self) -> bool:
        # Called before each part; each part has the whole budget.
        if self._budget is not None:
            self._budget.restart()
        return self._is_over() or _waits(self.connection, self.network)

    def _note(self, error: ExtractError) -> None:
        log_words(error)
        self.report.error = str(error)
        blocks = (error.from_block, error.to_block)
        record_failure(self.connection, self.network, error.call, blocks, str(error), self.batch_id)

    def _resolve(self, collector: Collector, head: Header, request: AttestationRequest, *, has_archive: bool) -> None:
        """Find the block of a request; if it is not final yet, the request waits."""
        moment = read_moment(request.as_of_text)
        number = moment.block
        if number is None:
            assert moment.end is not None
            number = self._last_block_before(moment.end, head)
        if number is None or number > self.final_number:
            return
        if not has_archive:
            set_request(self.connection, request, "Failed", _NO_ARCHIVE)
            return
        built = is_built(self.connection, request.subject_key, number)
        if built is None:
            set_request(self.connection, request, "Failed", f"block {number} is not covered")
        elif built:
            block_hash = collector.stored_hashes([number])[number]
            begin_requested(self.connection, self.network, request, number, block_hash)

    def _last_block_before(self, end: datetime, head: Header) -> int | None:
        after = self.node.block_at(end, head)
        return None if after is None else after - 1

    def _begin_periods(self, collector: Collector, head: Header, periods: Periods | None) -> None:
        """Begin the attestations of periods that ended."""
        pending = _due_periods(self.connection, self.network, periods, self.final_number)
        for period_end in sorted({end for _, end, number in pending if number is None}, reverse=True):
            if self._stops():
                return
            number = self._last_block_before(period_end.replace(tzinfo=UTC), head)
            if number is not None and number <= self.final_number:
                record_period_end(self.connection, self.network, period_end, number)
        for subject_key, period_end, number in _due_periods(self.connection, self.network, periods, self.final_number):
            if self._stops():
                return
            if number is not None and is_built(self.connection, subject_key, number):
                block_hash = collector.stored_hashes([number])[number]
                begin_period(self.connection, self.network, subject_key, number, block_hash, period_end)

    def _attest(self, collector: Collector, attestation: Attestation, *, has_archive: bool) -> bool:
        """Read the missing balances of an attestation and finish its record; return whether to begin the next one."""
        if not is_built(self.connection, attestation.subject_key, attestation.block_number):
            return True
        try:
            if not has_archive:
                raise StateUnavailable(self.network, "probe", None, None, _NO_ARCHIVE)
            return self._read(collector, attestation)
        except (StateUnavailable, CallRefused) as error:
            # A retry at once would get the same answer.
            self._note(error)
            told = error.told_of(attestation.block_number, attestation.block_number)
            refuse_attestation(self.connection, attestation, told)
            return False

    def _read(self, collector: Collector, attestation: Attestation) -> bool:
        pending = list_balances(self.connection, attestation)
        first = self._first_block(attestation)
        for start in range(0, len(pending), PART):
            if self._stops():
                return False
            self._read_part(collector, attestation, pending[start : start + PART], first)
            self._on_progress()
        if self._stops():
            return False
        began = time.monotonic()
        supply = None
        units = 0
        if attestation.kind == "token" and not has_supply(self.connection, self.network, attestation):
            supply = self.node.supplies([attestation.address], attestation.block_number, attestation.block_hash)
            supply = with_tenants(supply, [[attestation.tenant_id]])
            units = 1
        spending = self._spent(units, began)
        finish_attestation(self.connection, self.network, attestation, supply, spending, self.batch_id)
        return True

    def _first_block(self, attestation: Attestation) -> int:
        row = self.connection.execute("select max(range_from_block) from attested_balances").fetchone()
        assert row is not None
        return attestation.block_number if row[0] is None else int(row[0])

    def _read_part(
        self, collector: Collector, attestation: Attestation, part: Sequence[tuple[str, str, str, bool]], first: int
    ) -> None:
        began = time.monotonic()
        tenants = [attestation.tenant_id]
        known = {(token, holder): quantity for token, holder, quantity, _ in part}
        derived = {(token, holder): tenants for token, holder, _, is_derived in part if is_derived}
        openings = None
        if derived and first > 0:
            before = collector.stored_hashes([first - 1])[first - 1]
            openings = read_pending(self.connection, self.node, derived, first - 1, before).balances
        balances, failed, _ = read_pending(
            self.connection,
            self.node,
            dict.fromkeys(known, tenants),
            attestation.block_number,
            attestation.block_hash,
        )
        if failed:
            # A record is made once: a balance that cannot be read counts as one without a number.
            rows = [(*pair, attestation.block_number, attestation.block_hash, None, tenants) for pair in failed]
            balances.extend(pl.DataFrame(rows, schema=balances.schema, orient="row"))
        differences = sum(
            quantity is not None and quantity != known[token, holder]
            for token, holder, quantity in balances.select(
                "token_address", "holder_address", "quantity_raw"
            ).iter_rows()
        )
        spending = self._spent(len(part), began)
        store_part(self.connection, self.network, attestation, openings, balances, differences, spending, self.batch_id)
        self.report.count("balance_observations", balances.height)

    def _spent(self, units: int, began: float) -> UsageRecord:
        milliseconds = round((time.monotonic() - began) * 1_000)
        return UsageRecord(WorkClass.ATTESTATION, "balances", self.node.meter.take(), units, milliseconds)
