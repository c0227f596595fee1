"""One market fails in any way while its exchange answers for all others: these keep their prices."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from pipelines.extract.prices import http
from tests.chain.http_server import Reply
from tests.chain.late_answers import LATE, late_answers_time_out
from tests.prices.conftest import OpenExchange
from tests.prices.exchange_server import EXCHANGES, ExchangeServer, Request
from tests.prices.test_exchanges import IDS, known

_JSON = msgspec.json.Encoder(decimal_format="number")
_NAMES = {"ethusd", "xethzusd"}
_LARGE = 100_000

# Answers to the requests about one market alone.
REPLIES: dict[str, Callable[[Reply], Reply]] = {
    "a refusal": lambda reply: Reply(b'{"message": "Something odd happened"}', 400),
    "a time-out": lambda reply: LATE,
    "status 500": lambda reply: Reply(b"<html></html>", 500),
    "a closed connection": lambda reply: replace(reply, cut_after=0),
    "a part": lambda reply: replace(reply, cut_after=len(reply.body) // 2),
    "too large": lambda reply: Reply(b" " * (_LARGE + 1) + reply.body),
    "null": lambda reply: Reply(b"null"),
    "another type": lambda reply: Reply(b'[["odd"], 3]'),
    "empty": lambda reply: Reply(b"{}"),
}

# Values of one market's row in an answer about several.
ROWS: dict[str, Callable[[Any], Any]] = {
    "null": lambda row: None,
    "another type": lambda row: ["odd", 3],
    "a number": lambda row: 7,
    "empty": lambda row: {},
    "odd fields": lambda row: {name: value if _is_name(value) else ["odd"] for name, value in row.items()},
    "null fields": lambda row: {name: value if _is_name(value) else None for name, value in row.items()},
}


def _is_name(value: object) -> bool:
    return isinstance(value, str) and "".join(filter(str.isalpha, value)).lower() in _NAMES


def _is_row(key: object, value: object) -> bool:
    return isinstance(value, dict) and (_is_name(key) or any(map(_is_name, value.values())))


def _edited(answer: Any, change: Callable[[Any], Any]) -> Any:
    """Return an answer with the market's rows changed."""
    if isinstance(answer, dict):
        return {key: change(one) if _is_row(key, one) else _edited(one, change) for key, one in answer.items()}
    if isinstance(answer, list):
        return [change(one) if _is_row(None, one) else _edited(one, change) for one in answer]
    return answer


def _cases(ways: Iterable[str]) -> pytest.MarkDecorator:
    """Every way at two exchanges before each change, at all of them before a release."""
    return pytest.mark.parametrize(
        ("name", "way"),
        [
            pytest.param(
                name, way, marks=[pytest.mark.release] * (name not in ("kraken", "bitstamp")), id=f"{name}, {way}"
            )
            for name in EXCHANGES
            for way in ways
        ],
    )


@pytest.mark.proof("a market that cannot be read hides no price of another market")
@_cases(REPLIES)
def test_failed_requests_about_a_market_hide_no_other(
    name: str, way: str, server: ExchangeServer, open_exchange: OpenExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_MOST_BYTES", _LARGE)
    wanted = [(market_id, "Trade") for market_id in IDS[name]]
    spoilt = IDS[name][1]
    clean = {price.market_id: price for price in open_exchange(name, known(name)).poll(wanted).prices}
    assert clean.keys() == set(IDS[name])

    def spoil(request: Request, reply: Reply) -> Reply:
        return REPLIES[way](reply) if spoilt in (*request.path.split("/"), *request.query.values()) else reply

    server.spoil = spoil
    with late_answers_time_out():
        result = open_exchange(name, known(name), max_attempts=2).poll(wanted)
    assert {price.market_id: price for price in result.prices} == {
        market_id: price for market_id, price in clean.items() if market_id != spoilt
    }
    assert [problem.market_id for problem in result.problems] == [spoilt]
    assert result.problems[0].detail


@_cases(ROWS)
def test_a_malformed_row_hides_no_other(
    name: str, way: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    client = open_exchange(name, known(name))
    offers = [price_type for price_type in ("Ask", "Bid") if price_type in client._source.price_types]
    wanted = [(market_id, price_type) for market_id in IDS[name] for price_type in offers]
    clean = client.poll(wanted).prices
    server.spoil = lambda request, reply: replace(
        reply, body=_JSON.encode(_edited(json.loads(reply.body, parse_float=Decimal), ROWS[way]))
    )
    result = open_exchange(name, known(name)).poll(wanted)
    spoilt = IDS[name][1]
    assert [price for price in result.prices if price.market_id != spoilt] == [
        price for price in clean if price.market_id != spoilt
    ]
    listed = {market.market_id: market for market in open_exchange(name).markets()}
    right = {market.market_id: market for market in known(name)}
    assert {market_id: market for market_id, market in listed.items() if market_id != spoilt} == {
        market_id: market for market_id, market in right.items() if market_id != spoilt
    }
