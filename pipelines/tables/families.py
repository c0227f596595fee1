"""The raw tables of each family. Only this module and the extractors' registry name families."""

from pipelines.tables import evm, utxo
from pipelines.tables.table import RowTable, Table

ROW_TABLES: dict[str, RowTable] = {table.name: table for table in (*evm.TABLES, *utxo.TABLES)}
"""Rows of networks in the form in which their nodes say them."""
DERIVED_TABLES: dict[str, Table] = {table.name: table for table in utxo.DERIVED_TABLES}
"""Rows that families compute from the addresses of the configuration alone; each has `network` and `address`."""
