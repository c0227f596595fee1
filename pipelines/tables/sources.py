"""All raw tables, and the file that describes them to dbt.

`python -m pipelines.tables.sources` writes that file; a test checks that it is up to date.
"""

import json
from collections.abc import Iterator

from control.resources import DBT_PROJECT
from pipelines.tables import chain, control, pipeline, prices
from pipelines.tables.table import Table

SOURCES = (chain.SOURCE, control.SOURCE, pipeline.SOURCE, prices.SOURCE)
TABLES: dict[str, Table] = {table.name: table for source in SOURCES for table in source.tables}
DBT_FILE = DBT_PROJECT / "models" / "staging" / "_sources.yml"


def dbt_text() -> str:
    """Return the text of the file that dbt reads."""
    return "\n".join(_dbt_lines()) + "\n"


def _dbt_lines() -> Iterator[str]:
    yield "# Made by `python -m pipelines.tables.sources`; do not edit."
    yield "sources:"
    for source in SOURCES:
        yield f"  - name: {source.name}"
        yield f"    description: {json.dumps(source.description)}"
        yield "    schema: raw"
        yield "    tables:"
        for table in (*source.tables, *source.views):
            yield f"      - name: {table.name}"
            yield f"        description: {json.dumps(f'{table.description} {table.grain}')}"
            yield "        columns:"
            for column in table.columns:
                yield f"          - name: {column.name}"
                yield f"            description: {json.dumps(column.description)}"
                yield f"            data_type: {column.type}"


if __name__ == "__main__":
    DBT_FILE.write_text(dbt_text())
