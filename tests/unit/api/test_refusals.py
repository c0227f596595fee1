"""Limits on wrong API keys, with a fake clock."""

import pytest

from api.errors import ApiError
from api.http.rate_limits import Refusals, address_key
from tests.waiting import Naps


@pytest.fixture
def time() -> Naps:
    return Naps()


def add(refusals: Refusals, address: str, count: int) -> None:
    for number in range(count):
        refusals.check(address, f"wrong {number}")
        refusals.add(address, f"wrong {number}")


def test_address_with_many_wrong_keys_is_refused_for_the_rest_of_the_minute(time: Naps) -> None:
    refusals = Refusals(time.clock)
    add(refusals, "a", 60)
    time.sleep(15)
    with pytest.raises(ApiError, match="the address sent 60 wrong API keys") as found:
        refusals.check("a", "another")
    assert (found.value.status, found.value.code, found.value.headers) == (429, "rate-limited", {"Retry-After": "45"})
    refusals.check("b", "another")
    time.sleep(45)
    refusals.check("a", "another")


def test_wrong_keys_are_limited_over_all_addresses(time: Naps) -> None:
    refusals = Refusals(time.clock)
    for number in range(3_000 // 50):
        add(refusals, f"a{number}", 50)
    with pytest.raises(ApiError, match="the service got 3000 wrong API keys"):
        refusals.check("b", "another")
    time.sleep(60)
    refusals.check("b", "another")


def test_recently_valid_key_is_looked_up_after_wrong_keys_of_its_address(time: Naps) -> None:
    refusals = Refusals(time.clock)
    refusals.forgive("right")
    add(refusals, "a", 60)
    refusals.check("a", "right")
    # After its revocation it is a wrong key like any other.
    refusals.add("a", "right")
    with pytest.raises(ApiError):
        refusals.check("a", "right")


def test_number_of_remembered_keys_is_bounded(time: Naps) -> None:
    refusals = Refusals(time.clock)
    for number in range(10_001):
        refusals.forgive(str(number))
    add(refusals, "a", 60)
    refusals.check("a", "1")
    with pytest.raises(ApiError):
        refusals.check("a", "0")


def test_network_of_ipv6_counts_as_one_address() -> None:
    assert address_key("2001:db8::1") == address_key("2001:db8::ffff") != address_key("2001:db8:1::1")
