"""`make fuzz`: tens of thousands of requests against an application on the example data."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.api.valued import publish_valued
from tests.api.world import make_world
from tests.fuzz.campaign import PHASES, run


def main() -> int:
    """Run a campaign, and print its failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=150, help="random requests of each operation, and chains")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=PHASES, help="one phase alone")
    arguments = parser.parse_args()
    phases = (arguments.only,) if arguments.only else PHASES
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        publish_valued(world)
        world.store.close()
        outcome = run(world, arguments.examples, phases=phases, seed=arguments.seed)
    sys.stdout.write(f"{outcome}\n")
    return 0 if outcome.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
