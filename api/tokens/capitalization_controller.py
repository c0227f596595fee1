"""Market capitalization of tokens."""

from litestar import Controller

from api.examples import EXAMPLE_LINKED_TOKEN_ID
from api.http.calls import Call, Fetched, Tabular
from api.http.parameters import From, Injected, IntervalChoice, To, read_range
from api.http.route_specs import Example, RouteSpec
from api.http.routes import get
from api.prices.reading import require_link
from api.subjects.moments import read_view, resolve, to_as_of, to_coverage
from api.subjects.parameters import TokenId
from api.tokens import capitalization
from api.values.explaining import check_explain
from api.values.parameters import Explain
from api.values.schemas import CapitalizationPoint, MarketCapitalization
from control import subjects, tokens


class MarketCapitalizationController(Controller):
    """Market capitalization of a tenant's tokens."""

    path = "/v1/tokens/{tokenId:str}/market-capitalization"
    tags = ("Tokens",)

    @get(
        "/",
        RouteSpec(example=Example(path={"tokenId": EXAMPLE_LINKED_TOKEN_ID}, query={"interval": "1h"}), errors=(409,)),
    )
    def read_market_capitalization(
        self,
        call: Injected[Call],
        token_id: TokenId,
        start: From = None,
        end: To = None,
        interval: IntervalChoice = None,
        explain: Explain = False,
    ) -> MarketCapitalization | Tabular[CapitalizationPoint]:
        """Read a token's market capitalization.

        Total supply times the price of the linked pair: now, and at the last moment of each interval, by default the
        last 30 days, day by day. An interval that is not over has the numbers at `asOf`. Without a linked pair: 409. A
        new link gives values from the next published version on. CSV, NDJSON and Parquet have the history.
        """
        check_explain(explain, call.is_tabular, 0)
        with call.store.read() as session:
            token = tokens.get(session, call.tenant_id, token_id)
            windows = subjects.windows(session, token.subject_key)
        pair_id, priced_as, priced_in = require_link(token)
        times, length = read_range(start, end), interval or "1d"
        with call.snapshot() as snapshot:
            view = read_view(snapshot, token, windows)
            state = resolve(snapshot, view, None)
            as_of = to_as_of(view, state, snapshot)
            history = capitalization.history(snapshot, view, state, times, length, explains=explain)
            answer = MarketCapitalization(
                current=capitalization.current(snapshot, view, state, as_of, explains=explain),
                history=history,
                interval=length,
                pair_id=pair_id,
                priced_as=priced_as,
                currency=priced_in,
                as_of=as_of,
                coverage=to_coverage(view, state, times),
            )
            if call.is_tabular:
                return call.tabular(snapshot, CapitalizationPoint, lambda *_: Fetched(history, None), answer, token)
        return answer
