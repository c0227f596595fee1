"""Embeddable pages: static, without a tenant's data; only the tenant's allowed sites can frame them.

A page reads its token from the fragment of its URL, which no server receives. The public embed id in the path selects
the tenant's allowed sites. The page gets data only with a token for the same id.
"""

from typing import Any, get_args

from litestar import Request, Response, get
from litestar.concurrency import sync_to_thread
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from api.errors import ApiError
from api.http.calls import Services
from api.reports import assets
from api.reports.assets import Build
from api.reports.links import drawn_by
from api.reports.schemas.links import Report
from control import embedding
from control.embedding import Embedding

_REPORTS: tuple[Report, ...] = get_args(Report)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-src {frames}; base-uri 'none'; frame-ancestors {ancestors}"
)


def page_routes() -> list[HTTPRouteHandler]:
    """Return the routes of pages and of their scripts and styles; the first request reads the build."""
    kept: list[Build] = []

    def build() -> Build:
        if not kept:
            found = assets.read_build(assets.FOLDER)
            if found is None:
                raise ApiError(503, "reports-not-built", "the reports' pages are not built; run `make install`")
            kept.append(found)
        return kept[0]

    @get([f"/embed/{report}/{{embed_id:str}}" for report in _REPORTS])
    async def read_report_page(request: Request[Any, Any, Any], embed_id: FromPath[str]) -> Response[bytes]:
        services: Services = request.app.state.services
        # For a sync handler with several paths, the framework would use a thread only for the first path.
        found = await sync_to_thread(_find, services, embed_id)
        if found is None:
            return _page(build(), "error", services, (), status=404)
        answer = _page(build(), _page_of(services, request.scope["path"].split("/")[2]), services, found.origins)
        request.scope["state"]["may_be_framed"] = True
        return answer

    @get("/embed/assets/{name:str}", sync_to_thread=False)
    def read_report_asset(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
        asset = build().assets.get(name)
        if asset is None:
            raise NotFoundException
        coding = assets.choose_coding(request.headers.get("accept-encoding"), asset.contents)
        headers = {
            "ETag": asset.etags[coding],
            "Cache-Control": "public, max-age=31536000, immutable" if asset.is_immutable else "public, no-cache",
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == asset.etags[coding]:
            return Response(b"", status_code=304, media_type=asset.media_type, headers=headers)
        if coding != "identity":
            headers["Content-Encoding"] = coding
        return Response(asset.contents[coding], media_type=asset.media_type, headers=headers)

    return [read_report_page, read_report_asset]


def _find(services: Services, embed_id: str) -> Embedding | None:
    with services.store.read() as session:
        return embedding.find(session, embed_id)


def _page_of(services: Services, report: str) -> str:
    return "superset" if drawn_by(report, services.settings.reports_provider) == "superset" else report


def _page(build: Build, name: str, services: Services, origins: tuple[str, ...], status: int = 200) -> Response[bytes]:
    frames = services.settings.superset_url if name == "superset" else "'self'"
    ancestors = "'none'" if name == "error" else " ".join(["'self'", *origins])
    headers = {
        "Content-Security-Policy": _POLICY.format(frames=frames, ancestors=ancestors),
        # Allow embedding by cross-origin isolated sites; frame-ancestors still lists the allowed sites.
        "Cross-Origin-Resource-Policy": "same-origin" if name == "error" else "cross-origin",
        "Cache-Control": "no-store",
    }
    return Response(build.pages[f"{name}.html"], status_code=status, media_type="text/html", headers=headers)
