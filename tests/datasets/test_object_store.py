"""The object store: it serves DuckDB over S3, refuses wrong keys, and never outlives its parent."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import duckdb
import psutil
import pytest

from tests.datasets.object_store import ObjectStore, ObjectStoreError

# It tests a tool of the tests.
pytestmark = pytest.mark.release

# DuckDB must read this file in many requests.
_ROWS = 400_000
_ROWS_A_GROUP = 20_000


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with ObjectStore() as running:
        yield running


@pytest.fixture(scope="module")
def bucket(store: ObjectStore) -> str:
    store.make_bucket("history")
    return "history"


@pytest.fixture(scope="module")
def big_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two files of one schema and size with other rows."""
    folder = tmp_path_factory.mktemp("big")
    return big_file(folder / "old.parquet", 0), big_file(folder / "new.parquet", 1)


def big_file(path: Path, first: int) -> Path:
    rows = f"select range as i, md5(range::varchar) as t from range({first}, {first + _ROWS})"
    duckdb.sql(rows).write_parquet(str(path), row_group_size=_ROWS_A_GROUP)
    return path


def extension_file() -> Path:
    """Return the path of DuckDB's extension in its package."""
    package = find_spec("duckdb_extension_httpfs")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}" / "httpfs.duckdb_extension"


def client(store: ObjectStore, *, key: str | None = None, secret: str | None = None) -> duckdb.DuckDBPyConnection:
    """Connect to a new database with the extension and the store's key; it may not download extensions."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False, "threads": 1}
    )
    connection.execute(f"load '{extension_file()}'")
    connection.execute(
        f"create secret (type s3, key_id '{key or store.access_key}', secret '{secret or store.secret_key}',"
        f" endpoint '{store.address}', url_style 'path', use_ssl false, region '{store.region}')"
    )
    return connection


def test_two_stores_run_at_once_on_loopback_addresses(store: ObjectStore) -> None:
    with ObjectStore() as second:
        second.make_bucket("other")
        second.put("other", "key", b"value")
        for one in (store, second):
            listening = [item for item in psutil.Process(one.pid).net_connections("inet") if item.status == "LISTEN"]
            assert len(listening) == 8
            assert {item.laddr.ip for item in listening} == {"127.0.0.1"}


def test_objects_survive_a_restart(bucket: str, store: ObjectStore) -> None:
    store.put(bucket, "restart/a.csv", b"a\n1\n")
    store.stop()
    with pytest.raises(ObjectStoreError, match="not running"):
        _ = store.pid
    store.start()
    assert client(store).sql(f"from 's3://{bucket}/restart/a.csv'").fetchall() == [(1,)]


def sockets(process: psutil.Process) -> list[Path]:
    """Return the files beside a store's gRPC ports."""
    ports = [item.laddr.port for item in process.net_connections("inet") if item.status == "LISTEN"]
    return [path for port in ports for path in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock")]


def test_stop_deletes_sockets_and_objects() -> None:
    with ObjectStore() as store:
        process = psutil.Process(store.pid)
        left = [Path(process.cwd()), *sockets(process)]
        assert len(left) == 5
        assert all(path.exists() for path in left)
    assert not any(path.exists() for path in left)


def test_store_ends_with_its_killed_parent() -> None:
    program = (
        "import time\n"
        "from tests.datasets.object_store import ObjectStore\n"
        "store = ObjectStore()\n"
        "store.start()\n"
        "print(store.pid, flush=True)\n"
        "time.sleep(900)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        process = psutil.Process(int(parent.stdout.readline()))
        folder, files = Path(process.cwd()), sockets(process)
        os.kill(parent.pid, signal.SIGKILL)
        psutil.wait_procs([process])
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    shutil.rmtree(folder)
    for file in files:
        file.unlink()


def test_variables_name_endpoint_key_and_region(store: ObjectStore) -> None:
    assert store.variables == {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.port}",
        "AWS_ACCESS_KEY_ID": store.access_key,
        "AWS_SECRET_ACCESS_KEY": store.secret_key,
        "AWS_REGION": "us-east-1",
    }


def test_duckdb_reads_parquet_over_s3(bucket: str, store: ObjectStore, big_files: tuple[Path, Path]) -> None:
    store.put(bucket, "read/date=2026-11-26/part 0.parquet", big_files[0])
    query = f"select count(*), sum(i), min(date)::varchar from 's3://{bucket}/read/*/*.parquet'"
    assert client(store).sql(query).fetchall() == [(_ROWS, _ROWS * (_ROWS - 1) // 2, "2026-11-26")]


def test_glob_lists_stored_keys(bucket: str, store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "date=2026-11-25").mkdir()
    (tmp_path / "date=2026-11-25" / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.csv").write_text("a\n2\n")
    assert store.put_folder(bucket, "listed", tmp_path) == ["listed/b.csv", "listed/date=2026-11-25/a.csv"]
    connection = client(store)
    listed = connection.sql(f"from glob('s3://{bucket}/listed/**') order by all").fetchall()
    assert listed == [(f"s3://{bucket}/listed/b.csv",), (f"s3://{bucket}/listed/date=2026-11-25/a.csv",)]
    store.delete(bucket, "listed/b.csv")
    assert connection.sql(f"from glob('s3://{bucket}/listed/*')").fetchall() == []


def test_wrong_secret_is_refused(bucket: str, store: ObjectStore) -> None:
    store.put(bucket, "secret/a.csv", b"a\n1\n")
    for query in (f"from 's3://{bucket}/secret/a.csv'", f"from glob('s3://{bucket}/secret/*')"):
        with pytest.raises(duckdb.HTTPException, match=r"HTTP 403[\s\S]*SignatureDoesNotMatch"):
            client(store, secret="wrong").sql(query).fetchall()
    with pytest.raises(duckdb.HTTPException, match=r"HTTP 403[\s\S]*InvalidAccessKeyId"):
        client(store, key="unknown").sql(f"from glob('s3://{bucket}/secret/*')").fetchall()


def test_missing_bucket_and_missing_key_are_errors(bucket: str, store: ObjectStore) -> None:
    with pytest.raises(ObjectStoreError, match="NoSuchBucket") as caught:
        store.put("missing", "key", b"value")
    assert caught.value.status == 404
    connection = client(store)
    with pytest.raises(duckdb.HTTPException, match=r"HTTP 404[\s\S]*NoSuchBucket"):
        connection.sql("from glob('s3://missing/**')").fetchall()
    with pytest.raises(duckdb.HTTPException, match="HTTP 404"):
        connection.sql(f"from 's3://{bucket}/missing.parquet'").fetchall()
    with pytest.raises(duckdb.IOException, match="No files found"):
        connection.sql(f"from 's3://{bucket}/missing/*.parquet'").fetchall()


def test_stopped_store_is_a_connection_error(bucket: str, store: ObjectStore) -> None:
    connection = client(store)
    store.stop()
    try:
        with pytest.raises(duckdb.IOException, match="Could not connect to server"):
            connection.sql(f"from 's3://{bucket}/a.parquet'").fetchall()
    finally:
        store.start()


def test_file_replaced_during_a_streamed_read_fails_the_read(
    bucket: str, store: ObjectStore, big_files: tuple[Path, Path]
) -> None:
    old, new = big_files
    store.put(bucket, "streamed.parquet", old)
    reader = client(store).execute(f"from 's3://{bucket}/streamed.parquet'")
    reader.fetchmany(1)
    store.put(bucket, "streamed.parquet", new)
    with pytest.raises(duckdb.Error, match=r"ETag on reading file .* was initially"):
        reader.fetchall()


def test_file_replaced_during_a_copy_fails_the_copy(
    bucket: str, store: ObjectStore, big_files: tuple[Path, Path]
) -> None:
    old, new = big_files
    store.put(bucket, "copied.parquet", old)
    connection = client(store)
    replaced: list[str] = []

    def replace(row: int) -> int:
        if not replaced:
            replaced.append(store.put(bucket, "copied.parquet", new))
        return row

    connection.create_function("replace_file", replace, ["BIGINT"], "BIGINT", side_effects=True)
    # DuckDB attaches the reply to its error as text, but the reply is a part of a Parquet file.
    with pytest.raises((duckdb.HTTPException, UnicodeDecodeError)):
        connection.execute(f"create table copied as select replace_file(i) as i, t from 's3://{bucket}/copied.parquet'")
    assert replaced
    assert connection.sql("show tables").fetchall() == []


def test_changed_extension_file_is_refused(tmp_path: Path) -> None:
    content = bytearray(extension_file().read_bytes())
    content[len(content) // 2] ^= 1
    changed = tmp_path / "httpfs.duckdb_extension"
    changed.write_bytes(content)
    with pytest.raises(duckdb.IOException, match="signature is either missing or invalid"):
        duckdb.connect().execute(f"load '{changed}'")
