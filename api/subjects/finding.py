"""Lookup of tokens and wallets, and the description of both collections for handlers that serve them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from litestar.di import Provide

from api.errors import invalid_parameter
from api.http.calls import Call
from api.http.parameters import Injected
from api.subjects.parameters import TokenId, WalletId
from control import subjects
from control.networks.addresses import InvalidAddress
from control.networks.definitions import Network
from control.networks.families import codec_for
from control.pricing.links import LinksInForce
from control.subjects import Kind, SubjectRow


@dataclass(frozen=True, slots=True)
class Subjects:
    """The collection of tokens or of wallets.

    Args:
        kind: token or wallet; it replaces `subject` in operation ids and descriptions.
        path: path of the collection.
        parameter: name of the path parameter with the id.
        find: dependency that reads the subject named by the path.
    """

    kind: Kind
    path: str
    parameter: str
    find: Callable[..., SubjectRow]

    @property
    def one_path(self) -> str:
        """Path of one token or wallet."""
        return f"{self.path}/{{{self.parameter}:str}}"

    @property
    def dependencies(self) -> Mapping[str, Provide]:
        """The dependency that passes the subject of the path to handlers, as `subject`."""
        return {"subject": Provide(self.find, sync_to_thread=True)}


def find(call: Call, kind: Kind, subject_id: str) -> tuple[SubjectRow, list[subjects.Window]]:
    """Return a token or wallet of the tenant, with its tracking windows.

    Raises:
        NotFound: the tenant has none with this id.
    """
    with call.store.read() as session:
        subject = subjects.get(session, call.tenant_id, kind, subject_id)
        return subject, subjects.windows(session, subject.subject_key)


def find_wallet(call: Call, wallet_id: str) -> tuple[SubjectRow, list[subjects.Window], LinksInForce]:
    """Return a wallet of the tenant, with its tracking windows, and the tenant's links.

    Raises:
        NotFound: the tenant has none with this id.
    """
    with call.store.read() as session:
        wallet = subjects.get(session, call.tenant_id, Kind.WALLET, wallet_id)
        links = call.services.links_in_force(session, call.tenant_id)
        return wallet, subjects.windows(session, wallet.subject_key), links


def parse_address(
    networks: Mapping[str, Network], subject: SubjectRow, parameter: str, text: str, others: str = ""
) -> str:
    """Return the stored form of an address that a parameter names, on the network of a token or wallet.

    If the network is no longer defined, this is the form that its family gives the address.

    Args:
        networks: the definitions, by name.
        subject: the token or wallet.
        parameter: name of the parameter.
        text: value of the parameter.
        others: end of the error text, such as the other values that the parameter accepts.

    Raises:
        ApiError: 422, the text is not an address of that network.
    """
    try:
        network = networks.get(subject.network)
        if network is None or network.family != subject.family:
            return codec_for(subject.family).parse(text)
        return network.parse_address(text)
    except InvalidAddress as error:
        raise invalid_parameter(parameter, "invalid-address", f"{error}{others}") from error


def _find_token(call: Injected[Call], token_id: TokenId) -> SubjectRow:
    with call.store.read() as session:
        return subjects.get(session, call.tenant_id, Kind.TOKEN, token_id)


def _find_wallet(call: Injected[Call], wallet_id: WalletId) -> SubjectRow:
    with call.store.read() as session:
        return subjects.get(session, call.tenant_id, Kind.WALLET, wallet_id)


TOKENS = Subjects(Kind.TOKEN, "/v1/tokens", "tokenId", _find_token)
WALLETS = Subjects(Kind.WALLET, "/v1/wallets", "walletId", _find_wallet)
