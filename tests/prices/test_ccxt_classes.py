"""One exchange's class without the others, beside a real import of the package; each in a process of its own."""

import subprocess
import sys

import pytest

from control.settings import CHECKOUT

LIGHT = "from pipelines.extract.prices.ccxt_classes import exchange_class\n"


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIGHT + script], capture_output=True, text=True, cwd=CHECKOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_class_is_imported_alone() -> None:
    script = """
import sys
assert exchange_class("kraken").__module__ == "ccxt.kraken"
assert "ccxt.base.exchange" in sys.modules
assert "ccxt.binance" not in sys.modules
exchange_class("gemini")
print(sorted(name for name in sys.modules if name.startswith("ccxt.") and name.count(".") == 1))
"""
    assert run(script) == "['ccxt.abstract', 'ccxt.base', 'ccxt.gemini', 'ccxt.kraken', 'ccxt.static_dependencies']\n"


@pytest.mark.parametrize("use", ["ccxt.exchanges", "ccxt.kraken().id"])
def test_the_package_is_whole_for_whoever_asks_for_more(use: str) -> None:
    script = f"""
light = exchange_class("kraken")
import ccxt
ccxt.__name__
{use}
from ccxt import kraken, binance, NetworkError, exchanges
assert kraken is light and ccxt.kraken is light and "kraken" in exchanges
assert isinstance(binance(), ccxt.Exchange)
assert exchange_class("kraken") is light and exchange_class("binance") is binance
try:
    ccxt.no_such_name
except AttributeError as error:
    print(error)
"""
    assert "no_such_name" in run(script)


def test_a_package_that_is_imported_already_is_used() -> None:
    script = """
import ccxt
assert exchange_class("kraken") is ccxt.kraken
assert ccxt.kraken.__module__ == "ccxt.kraken"
"""
    run(script)


def test_many_threads_find_one_whole_package() -> None:
    script = """
import threading
failures = []
def use():
    try:
        exchange_class("kraken")
        import ccxt
        assert ccxt.Exchange and ccxt.binance().id == "binance" and len(ccxt.exchanges) > 50
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=use) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failures, failures
"""
    run(script)


@pytest.mark.parametrize("name", ["krakn", "base", "abstract", "static_dependencies"])
def test_what_is_no_exchange_is_unknown(name: str) -> None:
    script = f"""
from pipelines.extract.prices.ccxt_classes import UnknownExchange
try:
    exchange_class({name!r})
except UnknownExchange as error:
    print(error)
"""
    assert run(script) == f"{name}\n"
