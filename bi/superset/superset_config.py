"""Superset's configuration for embedded reports. `run.py` passes the values that differ between installations."""

import os
from functools import partial

from frames import FrameAncestors
from guests import GuestSecurityManager, NoEvents

SECRET_KEY = os.environ["SUPERSET_SECRET_KEY"]
SQLALCHEMY_DATABASE_URI = os.environ["SUPERSET_METADATA_URL"]
_IS_SECURE = os.environ["SUPERSET_OWN_URL"].startswith("https://")

# provision.py creates the role of guests. The default role, Public, would also apply to visitors without a token.
FEATURE_FLAGS = {
    "EMBEDDED_SUPERSET": True,
    "ENABLE_TEMPLATE_PROCESSING": True,
    "ALERT_REPORTS": False,
    # With it, dashboards fail to load in browsers that block the storage of framed pages.
    "SQLLAB_BACKEND_PERSISTENCE": False,
}
CUSTOM_SECURITY_MANAGER = GuestSecurityManager
GUEST_ROLE_NAME = "Ledgermart guest"
GUEST_TOKEN_JWT_SECRET = os.environ["SUPERSET_GUEST_KEY"]
GUEST_TOKEN_JWT_AUDIENCE = "ledgermart-superset"
GUEST_TOKEN_JWT_EXP_SECONDS = 300

# The default policy lets pages load from six third-party hosts, and the default frame option forbids every frame.
TALISMAN_ENABLED = True
TALISMAN_CONFIG = {
    "content_security_policy": {
        "default-src": ["'none'"],
        "base-uri": ["'self'"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "form-action": ["'self'"],
        "img-src": ["'self'", "blob:", "data:"],
        "object-src": ["'none'"],
        "script-src": ["'self'", "'strict-dynamic'"],
        "style-src": ["'self'", "'unsafe-inline'"],  # Superset's components write their styles into the page
        "worker-src": ["'self'", "blob:"],
    },
    "content_security_policy_nonce_in": ["script-src"],
    "force_https": False,  # a reverse proxy's task
    "frame_options": None,  # frames.py sets the allowed origins
    "referrer_policy": "no-referrer",
    "session_cookie_secure": _IS_SECURE,
}
ADDITIONAL_MIDDLEWARE = [partial(FrameAncestors, key=GUEST_TOKEN_JWT_SECRET)]
SESSION_COOKIE_SECURE = _IS_SECURE
SESSION_COOKIE_SAMESITE = "Lax"
ENABLE_PROXY_FIX = _IS_SECURE
ENABLE_CORS = False

# Every query sees the version in force: DuckDB answers faster than a cache could be wrong.
CACHE_CONFIG = DATA_CACHE_CONFIG = {"CACHE_TYPE": "NullCache"}
ROW_LIMIT = 10_000
SQL_MAX_ROW = 100_000
SUPERSET_WEBSERVER_TIMEOUT = 60

# No data leaves the machine, and views are not recorded.
SCARF_ANALYTICS = False
EVENT_LOGGER = NoEvents()
CELERY_CONFIG = None
ENABLE_UI_THEME_ADMINISTRATION = False
THEME_FONT_URL_ALLOWED_DOMAINS: list[str] = []
LANGUAGES: dict[str, dict[str, str]] = {}
