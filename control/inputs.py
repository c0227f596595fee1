"""Base of request structs, which stand beside their rules, and the documentation of their values.

Bounds and patterns only document: the rules check values themselves, with their own codes and texts. They come from the
constants that the rules use.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from control import fields, ids
from control.instants import NAMED_DAYS, pattern_of
from control.networks.families import ADDRESS_PATTERN, LONGEST, WALLET_PATTERN
from control.pricing.decimals import MOST_DECIMALS, MOST_INTEGER_DIGITS

Keywords = dict[str, Any]
"""Keywords of JSON Schema."""

DECIMAL_INPUT = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][+-]?[0-9]{1,9})?")
"""Pattern of decimals in strings of requests."""


class Schema(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of every struct that crosses the wire."""

    @property
    def has_all_rows(self) -> bool:
        """True if complete coverage means that no row is missing; False if there may be unknown holders or assets."""
        return True


class ExactNumber(Decimal):
    """A decimal in a request: a JSON number or a decimal in a string, never through a float."""


DecimalText = Annotated[
    str,
    Meta(pattern=r"^-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$", description="Exact decimal, no exponent.", examples=["1.5"]),
]
Address = Annotated[
    str,
    Meta(
        description="Address in its family's canonical form.", examples=["0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"]
    ),
]
TrackingStatus = Literal["enabled", "disabled"]


def given(request: msgspec.Struct) -> dict[str, Any]:
    """Return the values that a request sets, by field; fields that it leaves out are missing."""
    return {name: value for name, value in msgspec.structs.asdict(request).items() if value is not UNSET}


def described(description: str, examples: Sequence[Any] | None = None, **keywords: Any) -> Meta:
    """Return a description with keywords of JSON Schema, for documentation only; msgspec does not enforce them."""
    shown = None if examples is None else list(examples)
    return Meta(description=description, examples=shown, extra_json_schema=keywords)


def line(most: int, description: str, examples: Sequence[str] | None = None) -> Meta:
    """Describe one line of at most `most` characters; `control.fields` checks it."""
    return described(description, examples, minLength=1, maxLength=most, pattern=fields.LINE_PATTERN)


def text(most: int, description: str) -> Meta:
    """Describe a text of at most `most` characters with any number of lines; `control.fields` checks it."""
    return described(description, minLength=1, maxLength=most, pattern=fields.TEXT_PATTERN)


def whole(pattern: re.Pattern[str]) -> str:
    """Convert a pattern for whole texts to JSON Schema: anchor it, and remove the names of groups."""
    # Some regex dialects match the digits of all scripts with \d.
    written = re.sub(r"[(][?]P<[a-z]+>", "(", pattern.pattern).replace(r"\d", "[0-9]")
    return f"^(?:{written})$"


def id_of(*prefixes: str) -> Keywords:
    """Return the pattern of ids with one of these prefixes."""
    return {"pattern": "|".join(map(ids.pattern_of, prefixes))}


TOKEN_ID, WALLET_ID, PAIR_ID = id_of("tok_"), id_of("wal_"), id_of("pair_")
OPERATION_ID, SUPPORTED_PAIR_ID = id_of("op_"), id_of("spair_")
SOURCE_ID: Keywords = {"pattern": "^src_[a-z0-9-]{1,80}$"}
PRICE_ID: Keywords = {"pattern": "^price_[0-9a-f]{32}$"}
ACTIVITY_ID: Keywords = {"pattern": "^act_[0-9a-f]{32}$"}
LEDGER: Keywords = {"pattern": f"{whole(fields.LEDGER_NAME)}|{ids.pattern_of('led_')}"}
NETWORK: Keywords = {"pattern": whole(fields.LEDGER_NAME)}
ITEM: Keywords = {"pattern": whole(fields.ITEM_SYMBOL)}
ADDRESS: Keywords = {"pattern": f"^(?:{ADDRESS_PATTERN})$"}
WALLET: Keywords = {"pattern": f"^(?:{WALLET_PATTERN})$", "maxLength": LONGEST}
# In answers, an ellipsis shortens the keys of wallets.
WALLET_FILTER: Keywords = WALLET | {"pattern": f"^(?:{WALLET_PATTERN}|.*\u2026.*)$"}
ASSET: Keywords = {"pattern": f"^(?:native|{ADDRESS_PATTERN})$"}
ASSET_OR_TOKEN: Keywords = {"pattern": f"{ASSET['pattern']}|{TOKEN_ID['pattern']}"}
FILTER: Keywords = {"minLength": 1, "maxLength": fields.FILTER_LENGTH, "pattern": fields.FILTER_PATTERN}
CURSOR: Keywords = {"minLength": 1, "maxLength": 2048, "pattern": "^[A-Za-z0-9_-]+$"}
INSTANT_OR_DAY: Keywords = {"pattern": pattern_of()}
MOMENT: Keywords = {"pattern": pattern_of(*NAMED_DAYS, blocks=True)}
MOMENT_OR_TODAY: Keywords = {"pattern": pattern_of("today", *NAMED_DAYS, blocks=True)}


def needs_one_of(*names: str) -> Keywords:
    """Return the rule of an object that must have at least one of some properties."""
    return {"anyOf": [{"required": [name]} for name in names]}


def positive(description: str, most: int | None = None) -> Meta:
    """Describe a decimal above zero, as a number or a text; `most` is the largest value if it has fewer digits."""
    bound = {"exclusiveMaximum": 10**MOST_INTEGER_DIGITS} if most is None else {"maximum": most}
    pattern = f"^(?!-)(?=[^eE]*[1-9])(?:{DECIMAL_INPUT.pattern})$"
    return described(
        f"{description} Greater than 0, with at most {MOST_INTEGER_DIGITS} digits before the decimal point and "
        f"{MOST_DECIMALS} after it. A JSON number, or a decimal in a string; both are read exactly.",
        ["1.5"],
        exclusiveMinimum=0,
        pattern=pattern,
        **bound,
    )
