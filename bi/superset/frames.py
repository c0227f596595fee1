"""`frame-ancestors` of Superset's pages: the origins that the API signed for embedded dashboards, else none.

A browser compares `frame-ancestors` with every page around a frame: the report's page of the API, and the customer's
page around that. One Superset serves all tenants. A fixed list would show each tenant the others' origins, and a
wildcard would allow any site. So the API signs the origins of one tenant (`api.reports.superset`), and the address of
the frame carries them.
"""

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

import jwt

AUDIENCE = "ledgermart-superset-frame"
PARAMETER = "frame"
_HEADER = "content-security-policy"


class FrameAncestors:
    """WSGI layer that completes the Content-Security-Policy of every answer with `frame-ancestors`.

    Args:
        application: wrapped WSGI application.
        key: signing key of the grants.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], key: str) -> None:
        self._application = application
        self._key = key

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        directive = f"frame-ancestors {self._ancestors(environ)}"

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            policies = [value for name, value in headers if name.lower() == _HEADER]
            kept = [header for header in headers if header[0].lower() != _HEADER]
            completed = [f"{value}; {directive}" for value in policies] or [directive]
            return start_response(status, kept + [("Content-Security-Policy", value) for value in completed], *more)

        return self._application(environ, start)

    def _ancestors(self, environ: dict[str, Any]) -> str:
        if not environ.get("PATH_INFO", "").startswith("/embedded/"):
            return "'none'"
        grants = parse_qs(environ.get("QUERY_STRING", "")).get(PARAMETER, [])
        try:
            claims = jwt.decode(
                grants[0] if len(grants) == 1 else "", self._key, algorithms=["HS256"], audience=AUDIENCE
            )
        except jwt.InvalidTokenError:
            return "'none'"
        return " ".join(claims["origins"])
