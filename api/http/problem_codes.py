"""Problem codes: the case in which each is returned, and the fix for the client.

`python -m api.http.problem_codes` writes `docs/reference/problem-codes.md` from here. Tests compare the page with this
module, and this module with the codes that the service raises.
"""

from collections.abc import Iterator
from typing import NamedTuple

from control.resources import REFERENCE

PAGE = REFERENCE / "problem-codes.md"


class ProblemCode(NamedTuple):
    """One `code` of a problem document, with its HTTP status; both texts are Markdown."""

    status: int
    code: str
    when: str
    action: str


PROBLEM_CODES = (
    ProblemCode(
        400,
        "bad-cursor",
        "The cursor is damaged, or belongs to another list, filter or tenant",
        "Start without a cursor",
    ),
    ProblemCode(400, "bad-host", "The request has no `Host` header, or several", "Send one"),
    ProblemCode(400, "bad-request", "The framework cannot read the request, such as its headers", "See `detail`"),
    ProblemCode(
        400,
        "csv-only",
        "`context` is in the query, and the answer is not CSV",
        "Leave `context` out, or accept `text/csv`",
    ),
    ProblemCode(400, "incomplete-body", "The connection ended before the body was complete", "Send the whole body"),
    ProblemCode(
        400, "malformed-csv", "The body is not CSV in UTF-8, or its header is wrong", "See `detail` for the line"
    ),
    ProblemCode(400, "malformed-field", "A body field has the wrong form, such as a date", "See `errors`"),
    ProblemCode(400, "malformed-form", "The body is not a percent-encoded form in UTF-8", "Encode the form"),
    ProblemCode(400, "malformed-json", "The body is not JSON", "See `detail` for the place"),
    ProblemCode(400, "malformed-parameter", "A query parameter has the wrong form, such as a date", "See `errors`"),
    ProblemCode(
        400,
        "pages-only",
        "`limit` or `cursor` is in the query of a file (CSV, NDJSON, Parquet)",
        "Leave it out: a file contains all rows",
    ),
    ProblemCode(400, "repeated-field", "A body field occurs more than once", "Send it once"),
    ProblemCode(400, "repeated-parameter", "A query parameter occurs more than once", "Send it once"),
    ProblemCode(400, "too-many-fields", "A form has too many fields", "Send each field once"),
    ProblemCode(400, "unexpected-body", "The operation takes no body", "Send none"),
    ProblemCode(400, "unknown-field", "A body has a field that the operation does not know", "Check its spelling"),
    ProblemCode(
        400, "unknown-parameter", "The query has a parameter that the operation does not know", "Check its spelling"
    ),
    ProblemCode(401, "token-expired", "The embed token of a report has expired", "Open the report with a new link"),
    ProblemCode(401, "token-invalid", "The embed token of a report is invalid", "Open the report with a new link"),
    ProblemCode(
        401,
        "token-revoked",
        "The embed tokens were replaced, or the key that made the link was revoked",
        "Open the report with a new link",
    ),
    ProblemCode(
        401,
        "unauthenticated",
        "The API key is missing, malformed, unknown or revoked",
        "Send `Authorization: Bearer lm_...`",
    ),
    ProblemCode(403, "role-too-low", "The role of the key is too low", "Use a key with the role in `requiredRole`"),
    ProblemCode(403, "wrong-report", "The embed token is for another report", "Open that report with its own link"),
    ProblemCode(
        404,
        "activity-not-found",
        "The wallet has no such activity, or its block left the chain",
        "List the wallet's activities",
    ),
    ProblemCode(404, "ledger-not-found", "The tenant has no such ledger", "List `/v1/networks/ledgers`"),
    ProblemCode(404, "network-not-found", "No network has this name", "List `/v1/networks`"),
    ProblemCode(404, "operation-not-found", "No such operation exists here", "List the operations of the resource"),
    ProblemCode(404, "pair-not-found", "The tenant has no such pair", "List `/v2/pairs`"),
    ProblemCode(404, "price-source-not-found", "The tenant has no such price source", "List `/v2/price-sources`"),
    ProblemCode(
        404, "priced-item-not-found", "The tenant has no priced item with this symbol", "List `/v1/priced-items`"
    ),
    ProblemCode(
        404,
        "quarantined-price-not-found",
        "The pair has no such quarantined price",
        "List `/v2/pairs/{pairId}/prices/quarantined`",
    ),
    ProblemCode(
        404,
        "supported-pair-not-found",
        "The manual source has no such pair",
        "List `/v2/price-sources/{sourceId}/pairs`",
    ),
    ProblemCode(404, "token-not-found", "The tenant has no such token, or removed it", "List `/v1/tokens`"),
    ProblemCode(404, "unknown-route", "No operation has this path", "See `/openapi.json`"),
    ProblemCode(404, "wallet-not-found", "The tenant has no such wallet, or removed it", "List `/v1/wallets`"),
    ProblemCode(405, "method-not-allowed", "The path exists, but not with this method", "See the header `Allow`"),
    ProblemCode(
        406,
        "not-acceptable",
        "`Accept` or `Accept-Encoding` allows none of the available forms",
        "Accept one that `detail` lists",
    ),
    ProblemCode(408, "body-too-slow", "The body came too slowly", "Send it again over a faster connection"),
    ProblemCode(
        409,
        "ambiguous-market",
        "Several assets have this ticker at the source",
        "Map the symbol: `PUT /v1/priced-items/{symbol}/mapping-symbols`",
    ),
    ProblemCode(
        409, "duplicate-pair", "A pair of these items and this price type exists", "Use the pair in `existingId`"
    ),
    ProblemCode(409, "duplicate-source", "A manual source has this name", "Use the source in `existingId`"),
    ProblemCode(
        409,
        "duplicate-supported-pair",
        "The manual source has a pair of these items and this price type",
        "Use the pair in `existingId`",
    ),
    ProblemCode(409, "duplicate-symbol", "A priced item has this symbol", "Use the item in `existingId`"),
    ProblemCode(409, "duplicate-token", "The ledger has this token", "Use the token in `existingId`"),
    ProblemCode(409, "duplicate-wallet", "The ledger has this wallet", "Use the wallet in `existingId`"),
    ProblemCode(409, "item-in-use", "Pairs or sources use the priced item", "Remove those in `detail` first"),
    ProblemCode(409, "ledger-in-use", "Tokens or wallets use the ledger", "Remove those in `detail` first"),
    ProblemCode(409, "ledger-on-other-network", "A ledger of this name is on another network", "Choose another name"),
    ProblemCode(
        409,
        "network-changed",
        "The family or chain of the network has changed since its first ledger",
        "The administrator restores the definition",
    ),
    ProblemCode(
        409,
        "network-undefined",
        "The network of the ledger is no longer defined",
        "The administrator restores the definition",
    ),
    ProblemCode(
        409,
        "no-linked-pair",
        "The token is not linked to a pair, so it has no price",
        "Link it: `PUT /v1/tokens/{tokenId}/priced-as`",
    ),
    ProblemCode(409, "no-usd-pair", "The symbol has no pair in USD", "Create the pair that `detail` describes"),
    ProblemCode(
        409,
        "not-covered",
        "The moment is in a gap or outside the collected data",
        "Ask for `before` or `after`, or fill one of the `gaps`",
    ),
    ProblemCode(
        409, "not-fungible", "The contract is no fungible token, so it has no amounts", "Use another contract address"
    ),
    ProblemCode(409, "operation-finished", "The operation has finished, so it cannot be cancelled", "Nothing"),
    ProblemCode(409, "pair-in-use", "Tokens are linked to the pair", "Unlink those in `detail` first"),
    ProblemCode(
        409, "preconfigured-source", "The operation is for manual price sources only", "Use a manual price source"
    ),
    ProblemCode(409, "price-out-of-range", "The price has more digits than a price can hold", "Reject it"),
    ProblemCode(
        409,
        "price-source-disabled",
        "The price source is disabled",
        "Enable it: `PATCH /v2/price-sources/{sourceId}/enable`",
    ),
    ProblemCode(
        409,
        "quota-exceeded",
        "The write would exceed a quota of the tenant; `detail` names quota, limit and setting",
        "Remove objects, or have the administrator raise the limit; `GET /v1/quotas` shows the usage",
    ),
    ProblemCode(409, "several-usd-pairs", "The symbol has several pairs in USD", "Send the `pairId` of one in `pairs`"),
    ProblemCode(
        409, "single-address", "The wallet is a single address, so it has no keys", "Use `ledgerId` of the wallet"
    ),
    ProblemCode(409, "source-in-use", "Pairs or mappings use the price source", "Change those in `detail` first"),
    ProblemCode(409, "supported-pair-in-use", "Pairs use the pair of the source", "Change those in `detail` first"),
    ProblemCode(
        410,
        "cursor-expired",
        "An earlier page has changed, the version of the pages was deleted or is of another release, or the service "
        "was restored",
        "Start without a cursor",
    ),
    ProblemCode(
        413, "body-too-large", "The body is larger than 1 MiB, or the form is larger than 16 KiB", "Send less at once"
    ),
    ProblemCode(
        415, "unsupported-media-type", "The operation does not take this `Content-Type`", "Send one that `detail` lists"
    ),
    ProblemCode(
        422,
        "idempotency-key-reused",
        "The `Idempotency-Key` was used for another request in the last 24 hours",
        "Send a new key",
    ),
    ProblemCode(422, "invalid-body", "One or more body fields are missing or invalid", "See `errors`"),
    ProblemCode(422, "invalid-parameter", "One or more parameters or headers are missing or invalid", "See `errors`"),
    ProblemCode(
        422,
        "no-archive",
        "The node of the network has no archive, so it cannot read past balances",
        "The administrator configures an archive node",
    ),
    ProblemCode(
        422,
        "not-supported",
        "Dashboards of Superset show the present only",
        "Leave `asOf` out, or use the builtin provider",
    ),
    ProblemCode(
        429,
        "rate-limited",
        "The key, or the address for a form, sent too many requests; or too many wrong keys came",
        "Wait `Retry-After`",
    ),
    ProblemCode(
        429,
        "too-many-waiting",
        "Too many requests of the tenant wait already",
        "Send fewer at once; wait `Retry-After`",
    ),
    ProblemCode(500, "internal-error", "Unexpected error", "Report `requestId`: the log has the cause"),
    ProblemCode(503, "busy", "The request waited too long for others", "Retry after `Retry-After`"),
    ProblemCode(
        503,
        "control-store-unavailable",
        "The control store is unreachable, locked or not migrated",
        "Retry after `Retry-After`; see `ledgermart status`",
    ),
    ProblemCode(
        503,
        "not-published",
        "No published version can be read, or it lacks data that this release needs",
        "Retry after the next cycle; a new installation needs `ledgermart init`",
    ),
    ProblemCode(
        503, "query-memory", "The query needs more than `LEDGERMART_QUERY_MEMORY_MB`", "Ask for a shorter range"
    ),
    ProblemCode(
        503,
        "query-timeout",
        "The query takes longer than `LEDGERMART_QUERY_TIMEOUT_SECONDS`",
        "Ask for a shorter range",
    ),
    ProblemCode(503, "reports-not-built", "The pages of the reports are not built", "Run `make install`"),
    ProblemCode(503, "superset-not-provisioned", "The dashboard is not provisioned in Superset", "Run `make superset`"),
    ProblemCode(
        503,
        "version-budget",
        "The versions that cursors hold exceed `LEDGERMART_VERSION_DISK_BUDGET_MB`",
        "Ask for all rows at once (`limit`, or a file), or wait up to an hour",
    ),
    ProblemCode(503, "version-damaged", "The published version cannot be read", "Repeat the request"),
    ProblemCode(503, "version-removed", "The published version was removed during the request", "Repeat the request"),
)

FIELD_CODES = {
    "bad-cursor": "the cursor is damaged or belongs to another list",
    "conflicting-parameters": "two parameters exclude each other",
    "control-character": "the text has a control character, or an invisible one",
    "csv-only": "the parameter is for CSV only",
    "earlier-than-from": "`to` is before `from`",
    "empty": "the value is empty",
    "empty-range": "nothing lies between the two bounds",
    "fraction-of-calendar": "months, quarters and years need a whole multiplier",
    "in-future": "the moment is not over yet",
    "invalid": "the value has the wrong type, or is not one of those allowed",
    "invalid-address": "the address is invalid on this network",
    "invalid-origin": "the text is no origin such as `https://example.com`",
    "json-only": "the parameter is for JSON only",
    "malformed": "the text has the wrong form; `detail` shows the right one",
    "missing": "a required value is missing",
    "native-asset": "the native asset of a network is not a token",
    "negative": "the number is below 0",
    "newest": "`from` is the newest block; an earlier moment is needed",
    "no-archive": "the node has no archive",
    "no-history": "no source of the pair has past prices of its type",
    "no-market": "the source has no market for these items",
    "no-tokens": "the network has no tokens",
    "not-a-number": "the value is no decimal number",
    "not-covered": "the moment is not covered",
    "not-enabled": "`history` is allowed only with `enabled`",
    "not-exact": "months and years have no exact length; write days",
    "not-for-tokens": "`native` is for wallets only",
    "not-fungible": "the contract is no fungible token",
    "not-in-usd": "the pair is not priced in USD",
    "not-positive": "the number must be above 0",
    "not-supported": "dashboards of Superset show the present only",
    "not-whole-seconds": "the windows would not last whole seconds",
    "other-network": "the token is on another network than the wallet",
    "other-symbol": "the pair prices another symbol",
    "out-of-range": "the value is outside its bounds",
    "pages-only": "the parameter is for JSON pages only",
    "repeated": "two of the fields have the same meaning; send one of them",
    "repeated-field": "the field occurs more than once",
    "repeated-instant": "two prices have the same `effectiveFrom`",
    "repeated-parameter": "the parameter occurs more than once",
    "repeated-source": "a price source occurs more than once",
    "reused": "the key was used for another request",
    "same-item": "an item cannot be priced in itself, or bridged by one of its own items",
    "surrounding-space": "the text begins or ends with white space",
    "too-large": "the number has too many digits before the point",
    "too-long": "the text has too many characters",
    "too-many": "the list has too many entries",
    "too-many-explained": "`explain` takes at most 100 rows",
    "too-many-intervals": "the range has too many intervals",
    "too-many-windows": "the range has too many windows",
    "too-precise": "the number, or the instant, has too many decimals",
    "unexpected": "the operation takes no body",
    "unknown-action": "no audit action has this name",
    "unknown-class": "no class of priced items has this name",
    "unknown-field": "the operation does not know the field",
    "unknown-filter": "the list has no such filter",
    "unknown-ledger": "the tenant has no such ledger",
    "unknown-mode": "no mode of native value has this name",
    "unknown-pair": "the tenant has no such pair",
    "unknown-parameter": "the operation does not know the parameter",
    "unknown-price-type": "no price type has this name",
    "unknown-size": "no window size has this name",
    "unknown-sort": "the list cannot be sorted by this",
    "unknown-source": "the price source does not exist, or is not one of the pair",
    "unknown-status": "`trackingStatus` is `enabled` or `disabled`",
    "unknown-symbol": "no priced item has this symbol",
    "unknown-token": "the tenant has no such token",
    "unsupported-bound": "`from` cannot be `now`, `to` cannot be `creation`",
    "unsupported-type": "the source has no prices of this type",
    "without-history": "a dry run of tracking needs `history`",
}

_INTRODUCTION = """\
<!-- Made by `python -m api.http.problem_codes`; do not edit. -->
# Problem codes

Every error is a problem document (`application/problem+json`). [The API guide](api-guide.md#errors) shows one and
explains its properties. Programs read `code`; `detail` is a sentence for people.

## Codes of problems
"""

_ON_VALUES = """
## Codes of single values

`errors` lists each invalid value, with a code of its own and a `pointer` into the body or the name of a `parameter`.
A conflict (409) that concerns single fields repeats its own code there.
"""


def page() -> str:
    """Return the reference page in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield "| status | code | when | do |"
    yield "| --- | --- | --- | --- |"
    for problem in PROBLEM_CODES:
        yield f"| {problem.status} | `{problem.code}` | {problem.when} | {problem.action} |"
    yield _ON_VALUES
    yield "| code | meaning |"
    yield "| --- | --- |"
    for code, meaning in FIELD_CODES.items():
        yield f"| `{code}` | {meaning} |"


if __name__ == "__main__":
    PAGE.write_text(page())
