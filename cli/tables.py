"""Tables in a terminal, without truncated cells."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from cli.terminal import plain_line

_WIDEST = 100_000


def print_rows(console: Console, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in full, with nothing for None; a narrow terminal wraps the lines."""
    table = Table(*headers, box=None)
    for row in rows:
        table.add_row(*(Text("" if cell is None else plain_line(str(cell))) for cell in row))
    options = console.options.update(max_width=_WIDEST)
    wide = Console(file=console.file, highlight=False, soft_wrap=True, width=_WIDEST)
    wide.print(table, width=Measurement.get(wide, options, table).maximum)
