"""Run one collection and a slice of history in a separate process; kill it after a number of statements if given.

python -m tests.integration.collect_once FOLDER URL [STATEMENTS]
"""

import sys
from pathlib import Path

from tests.integration.clean_collection import small_parts
from tests.integration.harness import LocalNetwork, Service
from tests.integration.killing import ending_after, kill_this_process


def main(folder: str, url: str, statements: str = str(sys.maxsize)) -> None:
    """Collect from the node at the URL into the service in the folder, a few blocks at a time."""
    service = Service(Path(folder), [LocalNetwork("local", url, max_log_range=5)])
    with small_parts(), ending_after(int(statements), kill_this_process, "tests.integration.harness"):
        service.cycle()
        service.history()


if __name__ == "__main__":
    main(*sys.argv[1:])
