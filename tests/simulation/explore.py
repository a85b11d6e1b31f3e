"""Play random schedules for as long as you like: python -m tests.simulation.explore."""

import argparse
import logging
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.simulation import rules
from tests.simulation.play import Schedule, play
from tests.simulation.schedules import schedules


def main() -> None:
    named = {rule.__name__: rule for rule in rules.RULES}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=1_000)
    parser.add_argument("--quiet", action="store_true", help="no crashes, no faults")
    parser.add_argument("--rule", choices=sorted(named), help="one more to be kept")
    given_ = parser.parse_args()
    logging.disable(logging.CRITICAL)
    search(given_.seed, given_.examples, not given_.quiet, named.get(given_.rule))
    print("nothing found")  # noqa: T201 - a program of its own


def search(
    number: int,
    examples: int,
    rough: bool,
    rule: Callable[[rules.Journal], list[str]] | None,
) -> None:
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
        played = play(schedule)
        if rule is not None:
            assert rule(played.records) == [], schedule

    explore()


if __name__ == "__main__":
    main()
