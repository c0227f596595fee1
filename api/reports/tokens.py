"""Embed tokens: short-lived signed permissions to show one report of one tenant.

A token is a JWT (HS256) with its own secret and audience, so that other tokens of the service are not valid here.
Tenant and parameters of a report come only from the token. The guard checks that its embed id and key are still valid.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta

import jwt
import msgspec
from jwt.types import Options

from api.errors import ApiError
from api.http.calls import Services
from api.reports.schemas.links import Report
from control import service_secrets

LIFE = timedelta(minutes=10)
SESSION = timedelta(hours=8)
"""Time after the creation of a link in which its page may renew the token."""

_ALGORITHM = "HS256"
_AUDIENCE = "ledgermart-embed"
_REQUIRED = ["aud", "tenant", "report", "params", "embed", "key", "iat", "exp", "sxp", "jti"]
_LONGEST = 4096
_CHALLENGE = {"WWW-Authenticate": 'Bearer error="invalid_token"'}


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a token.

    Attributes:
        tenant: id of the tenant.
        params: the report's parameters by their names in the API.
        embed: the tenant's embed id at the time of signing.
        key: id of the API key that requested the link.
        iat: time of signing, Unix seconds.
        exp: time of expiry, Unix seconds.
        sxp: end of the session, Unix seconds.
    """

    aud: str
    tenant: str
    report: Report
    params: dict[str, str]
    embed: str
    key: str
    iat: int
    exp: int
    sxp: int
    jti: str


class TokenSigner:
    """Signer and reader of embed tokens.

    Args:
        secret: the service's signing key for embed tokens, 32 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def open_session(
        self, tenant_id: str, report: Report, params: Mapping[str, str], embed_id: str, key_id: str, now: datetime
    ) -> tuple[str, Claims]:
        """Return the first token of a session, with its content."""
        return self._sign(tenant_id, report, params, embed_id, key_id, now, int((now + SESSION).timestamp()))

    def go_on(
        self, claims: Claims, now: datetime, report: Report | None = None, params: Mapping[str, str] | None = None
    ) -> tuple[str, Claims]:
        """Return a further token of a session, by default for the same report; the end of the session does not change.

        Raises:
            ApiError: 401 `token-expired`, the session has ended.
        """
        if now.timestamp() >= claims.sxp:
            raise _expired()
        shown = claims.params if params is None else params
        return self._sign(claims.tenant, report or claims.report, shown, claims.embed, claims.key, now, claims.sxp)

    def read(self, token: str) -> Claims:
        """Return the content of a token.

        Raises:
            ApiError: 401, `token-expired`, or `token-invalid` for all other errors.
        """
        try:
            if len(token) > _LONGEST:
                raise jwt.InvalidTokenError("too long")
            # Do not check `iat`: the clock of the process that signed the token may be slightly ahead.
            options: Options = {"require": _REQUIRED, "verify_iat": False, "strict_aud": True}
            found = jwt.decode(token, self._secret, algorithms=[_ALGORITHM], audience=_AUDIENCE, options=options)
            return msgspec.convert(found, Claims)
        except jwt.ExpiredSignatureError as error:
            raise _expired() from error
        except (jwt.InvalidTokenError, msgspec.ValidationError) as error:
            detail = "the embed token is not valid; open the report with a new link"
            raise ApiError(401, "token-invalid", detail, headers=_CHALLENGE) from error

    def _sign(
        self,
        tenant_id: str,
        report: Report,
        params: Mapping[str, str],
        embed_id: str,
        key_id: str,
        now: datetime,
        session_end: int,
    ) -> tuple[str, Claims]:
        claims = Claims(
            aud=_AUDIENCE,
            tenant=tenant_id,
            report=report,
            params=dict(params),
            embed=embed_id,
            key=key_id,
            iat=int(now.timestamp()),
            exp=min(int((now + LIFE).timestamp()), session_end),
            sxp=session_end,
            jti=secrets.token_urlsafe(16),
        )
        return jwt.encode(msgspec.to_builtins(claims), self._secret, algorithm=_ALGORITHM), claims


def revoked() -> ApiError:
    """Return the error of a token after its embed id was replaced or its key was revoked."""
    detail = "the embed token has been revoked; open the report with a new link"
    return ApiError(401, "token-revoked", detail, headers=_CHALLENGE)


def signer_of(services: Services) -> TokenSigner:
    """Return the signer of embed tokens with the service's secret."""
    return TokenSigner(services.secret(service_secrets.EMBED_SIGNING_KEY))


def _expired() -> ApiError:
    detail = "the embed token has expired; open the report with a new link"
    return ApiError(401, "token-expired", detail, headers=_CHALLENGE)
