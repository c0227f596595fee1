"""One measured reading of files: `python -m tests.bench.files_process FOLDER`.

Reads all files of AWS's form in the folder, of every token in them, as far as the frames that would be stored.
Prints one JSON object: rows, wall and processor seconds, peak and imported memory in bytes.
"""

import json
import sys
from pathlib import Path

import duckdb

from control.networks.data_sets import DataSet
from control.ranges import BlockRange
from pipelines.data_sets.listing import list_units
from pipelines.data_sets.reader import open_reader
from pipelines.data_sets.staging import Wanted, drop_staged, stage
from pipelines.extract.evm.forms import FORMS
from pipelines.rows import Segment
from tests.bench.measurement import Clock, peak_bytes

# Of a block beyond all files.
_HEAD = 2**40


def main(folder: str) -> None:
    """Read the files and print the measurements."""
    imported = peak_bytes()
    data_set = DataSet("aws", "aws", f"{folder}/logs/date={{date}}/*.parquet")
    with duckdb.connect() as connection:
        found = connection.execute(
            f"select distinct address from '{folder}/logs/*/*.parquet' where len(topics) = 3"
        ).fetchall()
    tokens = tuple(sorted(address for (address,) in found))
    clock, rows = Clock(), 0
    with open_reader(Path(folder) / "staging" / "bench.duckdb", "bench", [data_set]) as reader:
        for unit in list_units(reader, data_set, "logs"):
            wanted = Wanted({"token": frozenset(tokens)}, BlockRange(0, _HEAD))
            staged, _ = stage(reader, "evm", unit, FORMS[data_set.form], wanted, _HEAD)
            covered = staged.bounds()
            assert covered is not None
            segment = Segment("token", covered, tokens)
            for part in staged.parts(segment):
                rows += sum(frame.height for frame in staged.rows(segment._replace(covered=part)).values())
            drop_staged(reader)
    print(json.dumps({"rows": rows, **clock.read(), "peak": peak_bytes(), "imported": imported}))


if __name__ == "__main__":
    main(*sys.argv[1:])
