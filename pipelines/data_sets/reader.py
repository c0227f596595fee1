"""The query engine that reads files: its own database, with limits, and no access to any other file.

Rows of a file are kept in this database until they are checked and stored, so that a killed read goes on where it was.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb

from control.networks.data_sets import DataSet
from control.settings import S3
from pipelines.data_sets.errors import CHANGED, FileRefused, FilesUnreadable
from warehouse.opening import connect, literal
from warehouse.s3 import allow_s3

# Memory of the query engine in megabytes; what needs more goes to the disk.
_MEMORY_MB = 256
_THREADS = 2
# Time of one statement: of any, and of one that reads files, by their size. A day of 300 MB takes seconds.
_SECONDS = 60.0
_BYTES_PER_SECOND = 2_000_000
_CALL = "files"
_WORDS_OF_STORES = ("HTTP", "connect to server", "establish connection")


class Reader:
    """Statements on files; errors of files and of their store become `FileRefused` and `FilesUnreadable`.

    Args:
        connection: the database of staged rows.
        network: for errors.
        is_remote: a store may be slow, so a file that takes too long is none that must not be used.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, network: str, *, is_remote: bool) -> None:
        self.connection = connection
        self.network = network
        self._is_remote = is_remote
        self.seconds = _SECONDS

    def allow_for(self, byte_count: int) -> None:
        """Set the time of each of the next statements by the size of the files that they read."""
        self.seconds = _SECONDS + byte_count / _BYTES_PER_SECOND

    def run(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> duckdb.DuckDBPyConnection:
        """Execute a statement within its time.

        Raises:
            FileRefused: a file is damaged, changed while it was read, or needs more time or memory than it may have.
            FilesUnreadable: the store of the files does not answer, or refuses.
        """
        timer = threading.Timer(self.seconds, self.connection.interrupt)
        timer.start()
        try:
            return self.connection.execute(statement, parameters)
        except duckdb.InterruptException as error:
            detail = f"reading it takes more than {self.seconds:.0f} seconds"
            if self._is_remote:
                raise FilesUnreadable(self.network, _CALL, detail=detail) from error
            raise FileRefused(f"{detail}; cut it into smaller files") from error
        except duckdb.OutOfMemoryException as error:
            raise FileRefused(f"reading it takes more than {_MEMORY_MB} MB of memory or the disk is full") from error
        except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException):
            # A defect of the statement, not of the file.
            raise
        except (duckdb.Error, OSError, UnicodeDecodeError) as error:
            # A failed request in the middle of a read raises any of these, the last one because its body is no text.
            if isinstance(error, UnicodeDecodeError) or "ETag" in str(error):
                raise FileRefused(CHANGED) from error
            if any(word in str(error) for word in _WORDS_OF_STORES):
                raise self._of_store(error) from error
            raise FileRefused("it is damaged, or not of the form that its columns promise") from error
        finally:
            timer.cancel()

    def _of_store(self, error: Exception) -> FilesUnreadable:
        told = FilesUnreadable(self.network, _CALL, detail="the store of the files does not answer, or refuses")
        told.words = str(error)[:500]
        return told


@contextmanager
def open_reader(path: Path, network: str, data_sets: Sequence[DataSet]) -> Iterator[Reader]:
    """Open the database of staged rows; replace a damaged one by an empty one.

    Args:
        path: its file; temporary files are in the same folder.
        network: name of the network.
        data_sets: their folders are all that may be read.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        connection = connect(path)
    except (duckdb.SerializationException, duckdb.InternalException, duckdb.IOException):
        remove_staged(path)
        connection = connect(path)
    with closing(connection):
        connection.execute(f"set memory_limit = '{_MEMORY_MB}MB'; set threads = {_THREADS}; set timezone = 'UTC'")
        connection.execute("set preserve_insertion_order = false; set autoinstall_known_extensions = false")
        # Staged rows are read once. Compressing them takes as long as everything else.
        connection.execute("set force_compression = 'uncompressed'")
        connection.execute("set autoload_known_extensions = false; set max_temp_directory_size = '10GB'")
        is_remote = any(data_set.folder.startswith(S3) for data_set in data_sets)
        if is_remote:
            allow_s3(connection)
        folders = ", ".join(literal(data_set.folder) for data_set in data_sets)
        connection.execute(f"set allowed_directories = [{folders}]")
        connection.execute("set enable_external_access = false; set lock_configuration = true")
        yield Reader(connection, network, is_remote=is_remote)


def remove_staged(path: Path) -> None:
    """Remove the database of staged rows."""
    for name in (path, path.with_name(f"{path.name}.wal")):
        name.unlink(missing_ok=True)


def identifier(name: str) -> str:
    """Return a name of a column as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'
