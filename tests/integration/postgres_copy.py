"""Rows of an SQLite control store in a PostgreSQL database of the same release: what such an installation holds."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import make_url


def copy_to_postgres(source: Path, url: str, revision: str) -> None:
    """Create the schema of a release in an empty database, and copy all rows of an SQLite file of that release."""
    engine = sa.create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection, closing(sqlite3.connect(source)) as stored:
        config = Config()
        config.set_main_option("script_location", "control:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        # Without triggers, foreign keys do not restrict the order of the tables.
        connection.execute(sa.text("set local session_replication_role = replica"))
        schema = sa.MetaData()
        schema.reflect(connection)
        for table in schema.sorted_tables:
            connection.execute(table.delete())
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            rows = stored.execute(f'select {names} from "{table.name}"').fetchall()
            if rows:
                connection.execute(table.insert(), [_converted(table, row) for row in rows])
        for name, table_name, column in connection.execute(sa.text(_SEQUENCES)).all():
            highest = f'(select max("{column}") from "{table_name}")'
            connection.execute(sa.text(f"select setval('\"{name}\"', {highest}) where {highest} is not null"))
    engine.dispose()


_SEQUENCES = """
    select sequence.relname, owner.relname, attribute.attname
    from pg_depend
    inner join pg_class as sequence on sequence.oid = pg_depend.objid and sequence.relkind = 'S'
    inner join pg_class as owner on owner.oid = pg_depend.refobjid
    inner join pg_attribute as attribute on attribute.attrelid = owner.oid and attribute.attnum = pg_depend.refobjsubid
"""


def _converted(table: sa.Table, row: tuple[Any, ...]) -> dict[str, Any]:
    return {
        column.name: value if value is None else _convert(column.type, value)
        for column, value in zip(table.columns, row, strict=True)
    }


def _convert(kind: sa.types.TypeEngine[Any], value: Any) -> Any:
    if isinstance(kind, sa.DateTime):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    if isinstance(kind, sa.Boolean):
        return bool(value)
    return json.loads(value) if isinstance(kind, sa.JSON) else value
