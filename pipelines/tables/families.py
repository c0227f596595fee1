"""The raw tables of each family's rows. Only this module and the extractors' registry name families."""

from pipelines.tables import evm, utxo
from pipelines.tables.table import RowTable

ROW_TABLES: dict[str, RowTable] = {table.name: table for table in (*evm.TABLES, *utxo.TABLES)}
"""Rows of networks in the form in which their nodes say them."""
