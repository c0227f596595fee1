"""Values over time: market capitalization of tokens, value of wallets."""

from litestar import Controller

from api.calls import Call, Fetched, Tabular
from api.operations import EXAMPLE_LINKED_TOKEN_ID, Example, Operation
from api.parameters import Explain, From, Injected, IntervalChoice, To, TokenId, WalletId, read_range
from api.reading import balances, capitalization, wallet_values
from api.reading.explain import check_explain
from api.reading.moments import read_view, resolve, to_as_of, to_coverage
from api.reading.subjects import to_wallet_summary
from api.reading.values import CURRENCY, require_link
from api.reading.wallet_totals import read_total
from api.routes import get
from api.schemas.values import CapitalizationPoint, MarketCapitalization, WalletValueHistory, WalletValuePoint
from api.subjects import find_wallet
from control import subjects, tokens


class MarketCapitalizationController(Controller):
    """Market capitalization of a tenant's tokens."""

    path = "/v1/tokens/{tokenId:str}/market-capitalization"
    tags = ("Tokens",)

    @get(
        "/",
        Operation(example=Example(path={"tokenId": EXAMPLE_LINKED_TOKEN_ID}, query={"interval": "1h"}), errors=(409,)),
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


class WalletValueController(Controller):
    """Value of a tenant's wallets."""

    path = "/v1/wallets/{walletId:str}/value-history"
    tags = ("Wallets",)

    @get("/", Operation(example=Example(query={"interval": "1h"})))
    def read_wallet_value_history(
        self,
        call: Injected[Call],
        wallet_id: WalletId,
        start: From = None,
        end: To = None,
        interval: IntervalChoice = None,
        explain: Explain = False,
    ) -> WalletValueHistory | Tabular[WalletValuePoint]:
        """Read the value history of a wallet.

        Sum of the values of its positions: now, and at the last moment of each interval, by default the last 30 days,
        day by day. Positions without a pair or a price are left out; `unpriced` names them. An interval that is not
        over has the numbers at `asOf`. CSV, NDJSON and Parquet have the points.
        """
        check_explain(explain, call.is_tabular, 0)
        wallet, windows, links = find_wallet(call, wallet_id)
        times, length = read_range(start, end), interval or "1d"
        with call.snapshot() as snapshot:
            view = read_view(snapshot, wallet, windows, links)
            state = resolve(snapshot, view, None)
            points = wallet_values.history(snapshot, view, state, times, length, explains=explain)
            total = to_wallet_summary(wallet, read_total(snapshot, view))
            answer = WalletValueHistory(
                total_value=total.total_value,
                total_value_status=total.total_value_status,
                value_complete=total.value_complete,
                unpriced=total.unpriced,
                change24h=total.change24h,
                change24h_status=total.change24h_status,
                change24h_omitted=total.change24h_omitted,
                currency=CURRENCY,
                holdings_complete=balances.is_complete(state),
                points=points,
                interval=length,
                as_of=to_as_of(view, state, snapshot),
                coverage=to_coverage(view, state, times),
            )
            if call.is_tabular:
                return call.tabular(snapshot, WalletValuePoint, lambda *_: Fetched(points, None), answer, wallet)
        return answer
