"""Value of wallets over time."""

from litestar import Controller

from api.http.calls import Call, Fetched, Tabular
from api.http.parameters import From, Injected, IntervalChoice, To, read_range
from api.http.route_specs import Example, RouteSpec
from api.http.routes import get
from api.subjects.finding import find_wallet
from api.subjects.moments import read_view, resolve, to_as_of, to_coverage
from api.subjects.parameters import WalletId
from api.values.explaining import check_explain
from api.values.parameters import Explain
from api.values.reading import CURRENCY
from api.values.schemas import WalletValueHistory, WalletValuePoint
from api.wallets import balances
from api.wallets import values as wallet_values
from api.wallets.reading import to_wallet_summary
from api.wallets.totals import read_total


class WalletValueController(Controller):
    """Value of a tenant's wallets."""

    path = "/v1/wallets/{walletId:str}/value-history"
    tags = ("Wallets",)

    @get("/", RouteSpec(example=Example(query={"interval": "1h"})))
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
