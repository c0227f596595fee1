"""Raw rows of the example data before dbt: a node's replies for the story of `tests.api.world`."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from control.networks.definitions import Network
from control.snapshot import ControlSnapshot
from pipelines.raw.builds import finish_batch
from pipelines.raw.database import open_warehouse
from pipelines.tenants.configuration import open_batch, replace_control
from pipelines.tenants.versions import advance
from tests.api.built import insert_raw
from tests.snapshots import changed, with_tables

_BATCH = 1
_RANGES = ((100, 200), (251, 400))
_STANDARDS = {"Fungible": "ERC-20", "NotFungible": "ERC-721"}


class Collected:
    """Raw rows of one network, all of one cycle.

    Args:
        network: its name.
        tenant_id: the tenant that may see every reading.
        blocks: hash and naive UTC time of each block that is stored, by number.
        tail: first block of the tail.
    """

    def __init__(self, network: str, tenant_id: str, blocks: Mapping[int, tuple[str, datetime]], tail: int) -> None:
        self._network, self._tenant_id, self._blocks = network, tenant_id, blocks
        self.rows: dict[str, list[dict[str, Any]]] = {}
        for number, (name, time) in blocks.items():
            self._add(
                "blocks",
                block_number=number,
                block_hash=name,
                parent_hash="0x",
                block_time=time,
                batch_id=_BATCH,
                is_tail=number >= tail,
            )

    def state(self, head: int, final: int) -> None:
        """Add the state of a healthy archive node."""
        name, time = self._blocks[head]
        self._add(
            "network_states",
            status="Healthy",
            status_since=time,
            head_number=head,
            head_hash=name,
            head_time=time,
            final_number=final,
            failures_in_a_row=0,
            probed_at=time,
            batch_id=_BATCH,
            capabilities=["past_balances"],
        )

    def contract(self, address: str, status: str, symbol: str | None, decimals: int | None) -> None:
        """Add a contract's metadata."""
        self._add(
            "token_metadata",
            token_address=address,
            contract_status=status,
            standard=_STANDARDS[status],
            symbol=symbol,
            decimals=decimals,
            read_at=self._newest,
            tenant_id=self._tenant_id,
        )

    def collected(self, kind: str, address: str, ranges: Iterable[tuple[int, int]] = _RANGES) -> None:
        """Mark ranges of an address as fully collected; kinds are those of `raw.coverage`.

        Files gave the transfers of the first range. Its second reading was complete; those of the other ranges were
        samples.
        """
        for number, (first, last) in enumerate(ranges):
            self._add(
                "verified_ranges",
                subject_kind=kind,
                address=address,
                from_block=first,
                to_block=last,
                is_sampled=number > 0,
            )
            self._add(
                "coverage",
                subject_kind=kind,
                address=address,
                from_block=first,
                to_block=last,
                row_count=0,
                provider="node",
                collected_at=self._newest,
                batch_id=_BATCH,
                data_set="aws" if number == 0 and kind != "native" else None,
            )

    def view(self, subject_key: int, window_keys: Iterable[int], native: str | None) -> None:
        """Add the tracking windows of a subject, as blocks; the last window is open."""
        for key, (first, last) in zip(window_keys, _RANGES, strict=True):
            self._add(
                "view_ranges",
                origin="Window",
                origin_key=key,
                subject_key=subject_key,
                from_block=first,
                to_block=None if last == _RANGES[-1][1] else last,
                native=native,
            )

    def transfer(
        self, block: int, number: int, token: str, sender: str, recipient: str, raw: int, *, position: int = 1
    ) -> None:
        """Add a transfer event; `number` numbers its transaction hash and is its log index in the block."""
        self._add(
            "token_transfers",
            **self._in(block),
            transaction_index=position,
            transaction_hash=f"0x{number:064x}",
            log_index=number,
            token_address=token,
            from_address=sender,
            to_address=recipient,
            amount_raw=str(raw),
            batch_id=_BATCH,
        )

    def transaction(self, block: int, number: int, sender: str, recipient: str, value: int, fee: int) -> None:
        """Add a successful transaction."""
        self._add(
            "transactions",
            **self._in(block),
            transaction_index=1,
            transaction_hash=f"0x{number:064x}",
            from_address=sender,
            to_address=recipient,
            value_raw=str(value),
            fee_raw=str(fee),
            is_success=True,
            batch_id=_BATCH,
        )

    def balances(self, block: int, token: str, read: Mapping[str, int]) -> None:
        """Add balances read at the end of a block, by holder."""
        for holder, raw in read.items():
            self._add(
                "balance_observations",
                **self._in(block),
                token_address=token,
                holder_address=holder,
                quantity_raw=str(raw),
                purpose="Check",
                batch_id=_BATCH,
                visible_to=self._visible_to,
            )

    def supply(self, block: int, token: str, raw: int) -> None:
        """Add the total supply read at the end of a block."""
        self._add(
            "supply_observations",
            **self._in(block),
            token_address=token,
            total_supply_raw=str(raw),
            batch_id=_BATCH,
            visible_to=self._visible_to,
        )

    def file(self, **values: Any) -> None:
        """Add a file of a data set, with these values."""
        self._add("data_files", modified_at=self._newest, listed_at=self._newest, **values)

    def found(self, subject_key: int, holders: Iterable[str]) -> None:
        """Add holders that appear in no transfer."""
        for holder in holders:
            self._add("found_holders", subject_key=subject_key, holder_address=holder, batch_id=_BATCH)

    def write(
        self, warehouse: Path, snapshot: ControlSnapshot, networks: Mapping[str, Network], subjects: Collection[int]
    ) -> None:
        """Make the warehouse, of these subjects alone and without prices."""
        tables = snapshot.tables
        shown = with_tables(
            snapshot,
            subjects=(changed(row, pair_key=None) for row in tables["control_subjects"] if row.subject_key in subjects),
            windows=(row for row in tables["control_windows"] if row.subject_key in subjects),
        )
        with open_warehouse(warehouse) as connection:
            assert open_batch(connection, "run") == _BATCH
            replace_control(connection, shown, networks, _BATCH)
        insert_raw(warehouse, self.rows)
        with open_warehouse(warehouse) as connection:
            finish_batch(connection, _BATCH)
            advance(connection, 0, 60)

    @property
    def _newest(self) -> datetime:
        return self._blocks[max(self._blocks)][1]

    @property
    def _visible_to(self) -> str:
        return f"{{{self._tenant_id}={_BATCH}}}"

    def _in(self, block: int) -> dict[str, Any]:
        return {"block_number": block, "block_hash": self._blocks[block][0]}

    def _add(self, table: str, **values: Any) -> None:
        self.rows.setdefault(table, []).append({"network": self._network, **values})
