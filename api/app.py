"""The application: routes, guard, error format, and resources that open and close with the process."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException

from api.attestations.controller import attestation_controller
from api.engine.shards import Shards
from api.http.auth import authorize, provide_call
from api.http.calls import Services
from api.http.documentation import documentation_routes
from api.http.edge import limited
from api.http.methods import answering_head
from api.http.openapi import argument_names, build_document, query_parameters, routes
from api.http.problems import handle_error
from api.http.request_log import observed
from api.http.route_specs import ARGUMENT_NAMES, QUERY_PARAMETERS
from api.http.structs import make_structs_ready
from api.networks.controller import NetworkController
from api.prices.controllers.discoveries import PriceDiscoveryController
from api.prices.controllers.history import PairPriceController, TokenPriceController
from api.prices.controllers.items import PricedItemController
from api.prices.controllers.links import TokenLinkController
from api.prices.controllers.manual_prices import SupportedPairController
from api.prices.controllers.pairs import PairController
from api.prices.controllers.reviews import PriceReviewController
from api.prices.controllers.sources import PriceSourceController
from api.reports.calls import authorize_embed, provide_embed_call
from api.reports.controllers.cap_table_changes import CapTableChangesReportController
from api.reports.controllers.embed import EmbedController
from api.reports.controllers.links import ReportController
from api.reports.controllers.report_data import (
    CapTableReportController,
    ReportIndexController,
    WalletActivityReportController,
)
from api.reports.controllers.superset import SupersetController
from api.reports.pages import page_routes
from api.service.audit import AuditController
from api.service.health import HealthController
from api.service.quotas import QuotaController
from api.subjects.finding import TOKENS, WALLETS
from api.tokens.capitalization_controller import MarketCapitalizationController
from api.tokens.controller import TokenController
from api.tracking.controller import subject_controller
from api.tracking.history_requests import history_controller
from api.wallets.controller import WalletController
from api.wallets.value_controller import WalletValueController
from control.networks.definitions import load_networks
from control.pricing.definitions import price_sources_in_force
from control.settings import Settings
from control.store import open_store

_MOST_BODY_BYTES = 1 << 20


def create_app(settings: Settings) -> Litestar:
    """Create the application; it opens the control store and the published marts at startup."""

    @asynccontextmanager
    async def services(app: Litestar) -> AsyncIterator[None]:
        settings: Settings = app.state.settings
        store = open_store(settings)
        clock: Callable[[], float] = app.state.clock
        shards = Shards(settings, settings.serving_dir, store, clock)
        networks, price_sources = load_networks(settings.networks_file), price_sources_in_force(settings)
        app.state.services = Services(settings, store, shards, networks, price_sources, clock)
        try:
            yield
        finally:
            shards.close()
            store.close()

    @cache
    def document() -> dict[str, Any]:
        return build_document(app)

    guarded = Router(
        "/",
        route_handlers=[
            NetworkController,
            TokenController,
            subject_controller(TOKENS),
            history_controller(TOKENS),
            attestation_controller(TOKENS),
            WalletController,
            subject_controller(WALLETS),
            history_controller(WALLETS),
            attestation_controller(WALLETS),
            PricedItemController,
            PriceSourceController,
            SupportedPairController,
            PairController,
            PriceDiscoveryController,
            PriceReviewController,
            TokenLinkController,
            PairPriceController,
            TokenPriceController,
            MarketCapitalizationController,
            WalletValueController,
            AuditController,
            QuotaController,
            ReportController,
        ],
        guards=[authorize],
        dependencies={"call": Provide(provide_call, sync_to_thread=False)},
    )
    embedded = Router(
        "/",
        route_handlers=[
            EmbedController,
            SupersetController,
            CapTableReportController,
            CapTableChangesReportController,
            WalletActivityReportController,
            ReportIndexController,
        ],
        guards=[authorize_embed],
        dependencies={"call": Provide(provide_embed_call, sync_to_thread=False)},
    )
    app = Litestar(
        route_handlers=[guarded, embedded, HealthController, *page_routes(), *documentation_routes(document)],
        lifespan=[services],
        exception_handlers={HTTPException: handle_error, Exception: handle_error},
        request_max_body_size=_MOST_BODY_BYTES,
        openapi_config=None,
        logging_config=None,
        debug=False,
        state=State({"settings": settings, "clock": time.monotonic}),
    )
    for _, _, handler in routes(app):
        handler.opt[QUERY_PARAMETERS] = query_parameters(handler)
        handler.opt[ARGUMENT_NAMES] = argument_names(handler)
    make_structs_ready()
    app.asgi_handler = observed(limited(answering_head(app), settings.trusted_proxies))
    return app


def openapi_document(settings: Settings) -> dict[str, Any]:
    """Return the OpenAPI document without starting the application."""
    return build_document(create_app(settings))
