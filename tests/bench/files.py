"""Reading of files of AWS Open Data's form: rows per second, processor seconds, memory.

The files are synthetic: days of 1,000,000 transfers each, among twice as many logs of other events. Checks against a
node and storing are not part of it; `history` measures both on a smaller chain. The reading is a separate process
(`files_process`).
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb

from pipelines.extract.evm.logs import TRANSFER_TOPIC
from tests.bench.measurement import Measurement

_DAYS = 10
_TRANSFERS = 1_000_000
_BLOCKS = 7_200
_TOKENS = 7
_HOLDERS = 50_000
_MIB = 2**20
# A hash that looks random, in hexadecimal, of the text of some expressions.
_HASH = "'0x' || sha256(concat_ws(':', {}))"
_ADDRESS = "'0x' || left(sha256(concat_ws(':', {})), 40)"


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Make the files once, then read them `repeat` times."""
    for day in range(1, _DAYS + 1):
        note(f"files: day {day} of {_DAYS}")
        _make_day(folder, day)
    for number in range(repeat or 1):
        note(f"files: run {number + 1}")
        command = [sys.executable, "-m", "tests.bench.files_process", str(folder)]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        if found["rows"] != _DAYS * _TRANSFERS:
            raise RuntimeError(f"files: {found['rows']:,} rows arrived, not {_DAYS * _TRANSFERS:,}")
        for quantity, unit, value, goal in (
            ("10,000,000 transfers", "s", found["wall"], "at most 120"),
            ("CPU per 100,000 transfers", "s", found["cpu"] / found["rows"] * 100_000, ""),
            ("peak memory", "MiB", found["peak"] / _MIB, "below 1024"),
            ("  of it: after imports", "MiB", found["imported"] / _MIB, ""),
        ):
            measured.append(Measurement("files", quantity, unit, value, goal))


def _make_day(folder: Path, day: int) -> None:
    """Write a day's logs; of three logs, one is a transfer."""
    target = folder / f"logs/date=2024-01-{day:02}/part-0.snappy.parquet"
    target.parent.mkdir(parents=True)
    logs = 3 * _TRANSFERS
    block = f"({(day - 1) * _BLOCKS + 1} + i * {_BLOCKS} // {logs})"
    padded = f"'0x{24 * '0'}' || left(sha256(concat_ws(':', 'holder', hash({{}}) % {_HOLDERS})), 40)"
    with duckdb.connect() as connection:
        connection.execute("set threads = 2; set memory_limit = '2GB'; set preserve_insertion_order = true")
        connection.execute(
            f"""
            copy (
                select
                    i::bigint as log_index,
                    {_HASH.format(f"'transaction', {day}, i // 3")} as transaction_hash,
                    (i // 3)::bigint as transaction_index,
                    {_ADDRESS.format(f"'token', if(i % 3 = 0, i % {_TOKENS}, -i % 1000)")} as address,
                    '0x' || lpad(to_hex(hash(i) // 10), 64, '0') as data,
                    if(
                        i % 3 = 0,
                        ['{TRANSFER_TOPIC}', {padded.format("i")}, {padded.format("i + 1")}],
                        [{_HASH.format("'event', i % 100")}]
                    ) as topics,
                    (timestamp '2024-01-01' + to_seconds({block} * 12))::timestamp as block_timestamp,
                    {block}::bigint as block_number,
                    {_HASH.format(f"'block', {block}")} as block_hash,
                    timestamp '2024-02-01' as last_modified
                from range({logs}) as logs(i)
            ) to '{target}' (compression snappy, row_group_size 100000)
            """
        )
