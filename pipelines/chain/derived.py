"""Rows that a family computes from the configured addresses alone."""

from pipelines.chain.segments import Collector
from pipelines.raw.database import transaction
from pipelines.raw.frames import registered
from pipelines.tables.families import DERIVED_TABLES


def store_derived(collector: Collector) -> None:
    """Store the rows that are missing, part by part, and remove those of addresses that are not configured any more.

    Raises:
        BudgetSpent: as `Node.derived`.
    """
    connection, network = collector.connection, collector.network
    for name, rows in collector.node.derived():
        table = DERIVED_TABLES[name].name
        with registered(connection, incoming=rows), transaction(connection):
            connection.execute(
                f"""
                delete from raw.{table}
                where network = $network
                    and address not in (select address from raw.control_subjects where network = $network)
                """,
                {"network": network},
            )
            connection.execute(f"insert into raw.{table} by name select *, ? as network from incoming", [network])
