"""Links of tokens: which pair values a token."""

from litestar import Controller

from api.examples import EXAMPLE_LINKED_TOKEN_ID, EXAMPLE_SYMBOL
from api.http.calls import Call
from api.http.parameters import Injected
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, put
from api.http.structs import filled
from api.prices.schemas.pairs import TokenLink
from api.subjects.parameters import TokenId
from control import tokens
from control.access import Role
from control.pricing import links
from control.pricing.links import PricedAsPut


class TokenLinkController(Controller):
    """The pair that values a token."""

    path = "/v1/tokens/{tokenId:str}/priced-as"
    tags = ("Tokens",)

    @put("/", RouteSpec(example=Example(body={"pricedAs": EXAMPLE_SYMBOL}), role=Role.OPERATOR, errors=(409,)))
    def put_token_priced_as(
        self,
        call: Injected[Call],
        token_id: TokenId,
        payload: Injected[PricedAsPut],
    ) -> TokenLink:
        """Link a token to the pair of a symbol.

        The token gets the symbol's USD pair. If there are several, name one with `pairId`. If there is none, the
        answer is 409, and names the missing pair or item. From the next cycle on, the pair gives all values, also of
        the past. A new link replaces the existing one.
        """
        with call.store.write() as session:
            token = tokens.get(session, call.tenant_id, token_id)
            token = links.link(session, call.principal, token, payload)
        return filled(TokenLink, token)

    @delete(
        "/",
        RouteSpec(
            example=Example(path={"tokenId": EXAMPLE_LINKED_TOKEN_ID}),
            role=Role.OPERATOR,
            statuses={204: "The token has no linked pair."},
        ),
    )
    def remove_token_priced_as(self, call: Injected[Call], token_id: TokenId) -> None:
        """Unlink a token.

        From the next cycle on it has no price and no values. A token without a link does not change.
        """
        with call.store.write() as session:
            links.unlink(session, call.principal, tokens.get(session, call.tenant_id, token_id))
