"""The store of files with the protocol of S3: its address and credentials, from the variables of AWS's clients."""

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import duckdb

from warehouse.extensions import load_extension
from warehouse.opening import literal

_SECONDS = 30


class Access(NamedTuple):
    """How the store is reached.

    Attributes:
        scheme, host: of another store than AWS's; empty for AWS.
        key, secret, token: the credentials; empty for anonymous requests.
    """

    scheme: str
    host: str
    region: str
    key: str
    secret: str
    token: str


def read_access(environ: Mapping[str, str] | None = None) -> Access:
    """Read the variables, by default of the process."""
    variables = os.environ if environ is None else environ

    def first(*names: str) -> str:
        return next((found for name in names if (found := variables.get(name))), "")

    endpoint = urlsplit(first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    key = first("AWS_ACCESS_KEY_ID")
    return Access(
        endpoint.scheme,
        endpoint.netloc,
        first("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1",
        key,
        first("AWS_SECRET_ACCESS_KEY") if key else "",
        first("AWS_SESSION_TOKEN") if key else "",
    )


def allow_s3(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a connection read and write `s3://` addresses, with the process's credentials.

    Raises:
        ExtensionError: the extension is not installed.
    """
    load_extension(connection, "httpfs")
    connection.execute(f"set http_timeout = {_SECONDS}; set http_retries = 2")
    access = read_access()
    options = {
        "key_id": access.key,
        "secret": access.secret,
        "session_token": access.token,
        "region": access.region,
        "endpoint": access.host,
        "url_style": "path" if access.host else "",
        "use_ssl": "false" if access.scheme == "http" else "",
    }
    given = ", ".join(f"{name} {literal(value)}" for name, value in options.items() if value)
    connection.execute(f"create secret (type s3, {given})")
