"""Play random schedules for as long as you like: python -m tests.simulation.explore."""

import argparse
import logging

from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.simulation.play import Schedule, play
from tests.simulation.schedules import schedules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=1_000)
    parser.add_argument("--quiet", action="store_true", help="no crashes, no faults")
    given_ = parser.parse_args()
    logging.disable(logging.CRITICAL)
    search(given_.seed, given_.examples, rough=not given_.quiet)
    print("nothing found")  # noqa: T201 - a program of its own


def search(number: int, examples: int, *, rough: bool) -> None:
    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(schedules(rough=rough))
    def explore(schedule: Schedule) -> None:
        play(schedule)

    explore()


if __name__ == "__main__":
    main()
