"""One collection and a slice of history in a process of its own, for tests that kill it: prints `ready` when it begins.

python -m tests.integration.collect_once FOLDER URL
"""

import sys
from pathlib import Path

from tests.integration.clean_collection import small_parts
from tests.integration.harness import LocalNetwork, Service


def main(folder: str, url: str) -> None:
    """Collect from the node at the URL into the service in the folder, a few blocks at a time."""
    service = Service(Path(folder), [LocalNetwork("local", url, max_log_range=5)])
    print("ready", flush=True)  # noqa: T201 - the other process waits for it
    with small_parts():
        service.cycle()
        service.history()


if __name__ == "__main__":
    main(*sys.argv[1:])
