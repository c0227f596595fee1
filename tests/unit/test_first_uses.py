"""Concurrent first uses of a struct by threads, which crash the process with plain msgspec 0.22."""

import subprocess
import sys

import pytest

_AT_ONCE = """
import sys
import threading

import msgspec

sys.setswitchinterval(1e-6)


def at_once(work):
    barrier = threading.Barrier(6)

    def run():
        barrier.wait()
        work()

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""

_ANSWERS = """
from typing import Annotated

from pipelines.extract.jsonrpc.client import decoder_of

Text = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]+$")]
names = [f"field_{index}" for index in range(12)]
content = msgspec.json.encode({"items": [dict.fromkeys(names, "0x1")]})
for number in range(500):
    inner = msgspec.defstruct(f"Inner{number}", [(name, Text) for name in names])
    outer = msgspec.defstruct(f"Outer{number}", [("items", list[inner])])
    at_once(lambda: decoder_of(outer | None).decode(content))
"""

_REQUESTS = """
import contextlib
import tempfile

from api.app import create_app
from api.http.structs import own_structs
from control.settings import load_settings

create_app(load_settings({"LEDGERMART_DATA_DIR": tempfile.mkdtemp()}))


def decode(struct):
    with contextlib.suppress(msgspec.ValidationError):
        msgspec.convert({field.encode_name: None for field in msgspec.structs.fields(struct)}, struct)


for struct in own_structs():
    at_once(lambda: decode(struct))
"""


@pytest.mark.ci
@pytest.mark.parametrize("uses", [_ANSWERS, _REQUESTS], ids=["answers of nodes", "requests"])
def test_process_survives_concurrent_first_uses(uses: str) -> None:
    done = subprocess.run([sys.executable, "-c", _AT_ONCE + uses], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
