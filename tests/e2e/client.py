"""A plain HTTP client of the API, as a user's program would have one. It knows paths and paging, and no payloads."""

import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Self
from urllib.parse import urlencode

import urllib3


class ApiError(Exception):
    """The API refused a request, or could not be reached; holds the status (0: no answer) and the problem body."""

    def __init__(self, message: str, status: int = 0, problem: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = problem or {}


class ApiClient:
    """Client of the API with one key; a context manager that closes its connections.

    Args:
        base_url: such as http://127.0.0.1:8000
        api_key: bearer key; None for routes without authentication.
        read_seconds: longest wait for a part of an answer.
    """

    def __init__(self, base_url: str, api_key: str | None = None, read_seconds: float = 300) -> None:
        self.base_url = base_url
        self._headers = {"Accept": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._http = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=60, read=read_seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.clear()

    def get(self, path: str, **parameters: str | int) -> dict[str, Any]:
        """Answer of a GET, decimals exact.

        Raises:
            ApiError: any status that is no success, or no answer.
        """
        return self._request("GET", f"{path}?{urlencode(parameters)}" if parameters else path)

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a PUT; errors as in `get`."""
        return self._request("PUT", path, body)

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of a POST with a new idempotency key, with or without body; errors as in `get`."""
        return self._request("POST", path, body, {"Idempotency-Key": str(uuid.uuid4())})

    def patch(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of a PATCH, with or without body; errors as in `get`."""
        return self._request("PATCH", path, body)

    def delete(self, path: str) -> dict[str, Any]:
        """Return the answer of a DELETE, which may be empty; errors as in `get`."""
        return self._request("DELETE", path)

    def pages(self, path: str, **parameters: str | int) -> Iterator[dict[str, Any]]:
        """Every page of a collection, following `nextCursor`; at least one."""
        page = self.get(path, **parameters)
        yield page
        while page["page"]["nextCursor"] is not None:
            page = self.get(path, **{**parameters, "cursor": page["page"]["nextCursor"]})
            yield page

    def is_ready(self) -> bool:
        """Return whether the service answers /health/ready with 200."""
        try:
            return self._http.request("GET", f"{self.base_url}/health/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        all_headers = {**self._headers, **(headers or {})}
        content = None
        if body is not None:
            all_headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            response = self._http.request(method, self.base_url + path, body=content, headers=all_headers)
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(f"{method} {path}: no answer ({error})") from error
        if response.status not in (200, 201, 202, 204):
            text = response.data.decode(errors="replace")
            is_problem = response.headers.get("Content-Type", "").startswith("application/problem+json")
            raise ApiError(
                f"{method} {path}: {response.status} {text[:1000]}",
                response.status,
                json.loads(text) if is_problem else None,
            )
        return dict(json.loads(response.data, parse_float=Decimal)) if response.data else {}
