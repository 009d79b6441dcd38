"""Plays histories for as long as you like: ``python -m tests.simulation --minutes 10``."""

import argparse
import logging
import sys
import time
from itertools import count

from tests.simulation.play import play


def main() -> None:
    """Play from a seed on, until the time is over or a history fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default 1)")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default 5)")
    parser.add_argument("--only", action="store_true", help="play the one seed, with its log")
    parser.add_argument("--joint", action="store_true", help="with several organizations only")
    parser.add_argument("--threads", action="store_true", help="with real threads only")
    arguments = parser.parse_args()
    if arguments.only:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
        play(arguments.seed, is_joint=arguments.joint, uses_threads=arguments.threads)
        print(f"seed {arguments.seed} holds")
        return
    logging.disable(logging.CRITICAL)
    started = time.monotonic()
    for seed in count(arguments.seed):
        is_joint = arguments.joint or seed % 3 == 0
        play(seed, is_joint=is_joint, uses_threads=arguments.threads or seed % 10 == 0)
        if time.monotonic() - started > 60 * arguments.minutes:
            print(f"{seed - arguments.seed + 1} histories hold, seeds {arguments.seed} to {seed}")
            return


if __name__ == "__main__":
    main()
