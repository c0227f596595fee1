"""Clients of price sources by their definitions. An adapter is one module and one line here."""

from collections.abc import Callable, Sequence

from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from pipelines.extract.errors import SourceRefused
from pipelines.extract.families import family_of
from pipelines.extract.prices.protocol import Market, PriceClient
from pipelines.extract.prices.reference_rates import ReferenceRateClient

Opener = Callable[[PriceSource, Network | None, Sequence[Market]], PriceClient]


def _open_exchange(source: PriceSource, _network: Network | None, markets: Sequence[Market]) -> PriceClient:
    # A local import: all of ccxt takes half a second to import, and no other source needs it.
    from pipelines.extract.prices.exchanges import ExchangeClient

    return ExchangeClient(source, markets)


ADAPTERS: dict[str, Opener] = {
    "ccxt": _open_exchange,
    "feeds": lambda source, network, _: _open_feeds(source, network),
    "reference-rates": lambda source, _, __: ReferenceRateClient(source),
}


def open_price_client(
    source: PriceSource, network: Network | None, known_markets: Sequence[Market] = ()
) -> PriceClient:
    """Open a source; the caller closes it.

    Args:
        source: its definition.
        network: of feeds, the network that they are on; unused by others.
        known_markets: last result of `PriceClient.markets`, where known: an exchange's poll then needs no market
            list. Without it, the poll requests one.

    Raises:
        SourceRefused: the definition does not fit the source, a credential is missing, or the network is disabled.
    """
    return ADAPTERS[source.adapter](source, network, known_markets)


def _open_feeds(source: PriceSource, network: Network | None) -> PriceClient:
    if network is None or network.name != source.network:
        raise SourceRefused(source.id, "open", f"needs network {source.network!r}, which is not defined")
    if not network.is_enabled:
        raise SourceRefused(source.id, "open", f"network {network.name!r} is disabled: {network.disabled_reason}")
    return family_of(network).price_feeds(source, network)
