"""Networks and ledgers."""

from litestar import Controller
from msgspec.structs import asdict

from api.examples import EXAMPLE_UNUSED_LEDGER
from api.http.calls import Call, Fetched, Tabular, Written, written
from api.http.lists import STORED, read_list, stored
from api.http.parameters import Cursor, From, Injected, IntervalChoice, Limit, To, read_range
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, patch, put
from api.http.structs import filled
from api.networks.parameters import LedgerName, NetworkName
from api.networks.rows import NetworkRow
from api.networks.schemas import Capabilities, Ledger, Ledgers, LedgerStatistics, Network, Networks, StoredLedger
from api.networks.statistics import read_members, read_statistics
from api.schema import DataVersion, Page
from api.subjects.warnings import network_warnings
from control import ledgers
from control.access import Role
from control.ledgers import LedgerPatch, LedgerPut
from control.models import Ledger as LedgerModel
from control.networks.definitions import Network as NetworkDefinition
from control.networks.families import codec_for
from control.networks.pins import enforce_pins, undefined_networks, undefined_reason


class NetworkController(Controller):
    """The preconfigured networks and a tenant's names for them."""

    path = "/v1/networks"
    tags = ("Networks and ledgers",)

    @get("/")
    def list_networks(self, call: Injected[Call]) -> Networks | Tabular[Network]:
        """List the preconfigured networks.

        All networks in the order of their definitions, with the last known state of their nodes. A network without a
        node address is `Disabled`; `statusDetail` names the setting that it needs. Networks that ledgers of the tenant
        use and that are not defined any more come last, as `Undefined`.
        """
        with call.snapshot() as snapshot:
            rows = {row.network: row for row in snapshot.rows("networks", NetworkRow)}
            with call.store.read() as session:
                definitions = enforce_pins(session, call.services.networks)
                undefined = undefined_networks(session, definitions.keys(), call.tenant_id)
            networks = [_to_network(network, rows.get(network.name)) for network in definitions.values()]
            networks += [_to_undefined(rows[name]) for name in undefined if name in rows]
            page = Page(limit=max(1, len(networks)), next_cursor=None)
            answer = Networks(
                data=networks, page=page, as_of=DataVersion(data_version=snapshot.data_version(call.tenant_id))
            )
            if call.is_tabular:
                return call.tabular(snapshot, Network, lambda *_: Fetched(networks, None), answer, state=networks)
        return answer

    @put(
        "/{name:str}/ledgers",
        RouteSpec(
            example=Example(body={"name": "ethereum-archive", "displayName": "Ethereum, archive"}),
            role=Role.OPERATOR,
            statuses={201: "The ledger was created.", 200: "The ledger existed and was updated."},
            errors=(409,),
        ),
    )
    def put_ledger(
        self,
        call: Injected[Call],
        name: NetworkName,
        payload: Injected[LedgerPut],
    ) -> Written[StoredLedger]:
        """Create or update a ledger.

        A ledger is a tenant's name for a network. If the name exists under this network, its display name and
        description are replaced. If it exists under another network, the answer is 409. `warnings` says if the network
        is disabled.
        """
        with call.store.write() as session:
            ledger, is_created = ledgers.put(
                session,
                call.principal,
                call.services.networks,
                name,
                payload,
            )
            warnings = network_warnings(call.services.networks, name)
        return written(201 if is_created else 200, StoredLedger(**asdict(_to_ledger(ledger)), warnings=warnings))

    @get("/ledgers")
    def list_ledgers(self, call: Injected[Call], limit: Limit = 50, cursor: Cursor = None) -> Ledgers | Tabular[Ledger]:
        """List the tenant's ledgers.

        Oldest first.
        """

        fetch = stored(
            call,
            lambda session, count, after: ledgers.list_page(session, call.tenant_id, count, after),
            lambda rows, *_: [_to_ledger(ledger) for ledger in rows],
        )
        return read_list(call, Ledgers, Ledger, fetch, limit, call.position(cursor, STORED))

    @get("/ledgers/{name:str}")
    def read_ledger(self, call: Injected[Call], name: LedgerName) -> Ledger:
        """Read one ledger.

        The path takes its name or its id.
        """
        with call.store.read() as session:
            return _to_ledger(ledgers.get(session, call.tenant_id, name))

    @patch(
        "/ledgers/{name:str}",
        RouteSpec(example=Example(body={"displayName": "Ethereum", "description": None}), role=Role.OPERATOR),
    )
    def patch_ledger(
        self,
        call: Injected[Call],
        name: LedgerName,
        payload: Injected[LedgerPatch],
    ) -> Ledger:
        """Change a ledger.

        Changes display name and description. A field that is left out stays the same; null deletes its value.
        """
        with call.store.write() as session:
            ledger = ledgers.update(session, call.principal, name, payload)
        return _to_ledger(ledger)

    @delete(
        "/ledgers/{name:str}",
        RouteSpec(
            example=Example(path={"name": EXAMPLE_UNUSED_LEDGER}),
            role=Role.ADMIN,
            statuses={204: "The ledger is removed."},
            errors=(409,),
        ),
    )
    def remove_ledger(self, call: Injected[Call], name: LedgerName) -> None:
        """Remove a ledger.

        Its name can be used again. If tokens or wallets use the ledger, the answer is 409.
        """
        with call.store.write() as session:
            ledgers.remove(session, call.principal, name)

    @get("/ledgers/{name:str}/statistics", RouteSpec(example=Example(query={"interval": "1d"})))
    def read_ledger_statistics(
        self,
        call: Injected[Call],
        name: LedgerName,
        start: From = None,
        end: To = None,
        interval: IntervalChoice = None,
    ) -> LedgerStatistics:
        """Read the statistics of a ledger.

        Numbers of tokens and wallets, the newest collected block, and numbers of activities and active wallets, in
        total and by intervals. By default the range is the last 30 days, day by day.
        """
        asked = read_range(start, end)
        with call.store.read() as session:
            ledger = ledgers.get(session, call.tenant_id, name)
            members = read_members(session, ledger)
        with call.snapshot() as snapshot:
            return read_statistics(snapshot, ledger, members, asked, interval or "1d")


def _to_network(network: NetworkDefinition, row: NetworkRow | None) -> Network:
    is_probed = row is not None and network.is_enabled
    return Network(
        name=network.name,
        display_name=network.display_name,
        family=network.family,
        is_testnet=network.is_testnet,
        chain_id=network.chain_id,
        native_symbol=network.native_symbol,
        address_format=codec_for(network.family).address_format,
        capabilities=Capabilities(
            internal_transfers=row.has_traces if row and is_probed else None,
            archive=row.has_archive if row and is_probed else None,
            input_addresses=row.has_input_addresses if row and is_probed else None,
        ),
        status=row.status if row and is_probed else "NotProbed" if network.is_enabled else "Disabled",
        status_detail=row.status_detail if row and is_probed else network.disabled_reason,
    )


def _to_undefined(row: NetworkRow) -> Network:
    return Network(
        name=row.network,
        display_name=row.display_name,
        family=row.family,
        is_testnet=row.is_testnet,
        chain_id=row.chain_id,
        native_symbol=row.native_symbol,
        address_format=codec_for(row.family).address_format,
        capabilities=Capabilities(internal_transfers=None, archive=None, input_addresses=None),
        status="Undefined",
        status_detail=undefined_reason(row.network),
    )


def _to_ledger(ledger: LedgerModel) -> Ledger:
    return filled(Ledger, ledger)
