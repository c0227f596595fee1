"""JSON schemas of values in requests: bounds and patterns, from the constants of the rules in `control`.

The schemas only document. The rules check the values, with their own codes and messages.
"""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Meta

from api.schema import DECIMAL_INPUT
from control import fields, ids
from control.instants import NAMED_DAYS, pattern_of
from control.ledgers import NAME
from control.networks.families import ADDRESS_PATTERN
from control.pricing.decimals import MOST_DECIMALS, MOST_INTEGER_DIGITS
from control.pricing.items import SYMBOL

Keywords = dict[str, Any]
"""Keywords of JSON Schema."""


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
LEDGER: Keywords = {"pattern": f"{whole(NAME)}|{ids.pattern_of('led_')}"}
NETWORK: Keywords = {"pattern": whole(NAME)}
ITEM: Keywords = {"pattern": whole(SYMBOL)}
ADDRESS: Keywords = {"pattern": f"^(?:{ADDRESS_PATTERN})$"}
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
