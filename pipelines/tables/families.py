"""The raw tables that each family's rows go to. The one module beside the extractors' registry that names families."""

from pipelines.tables import evm
from pipelines.tables.table import RowTable

ROW_TABLES: dict[str, RowTable] = {table.name: table for table in (*evm.TABLES,)}
