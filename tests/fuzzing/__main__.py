"""Fuzzes the targets, guided by coverage: ``python -m tests.fuzzing --minutes 10``.

An input that fails is written into the corpus, which `tests/fuzzing/test_fuzzing.py` reads.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.fuzzing.targets import TARGETS

PROJECT = Path(__file__).resolve().parents[2]
CORPUS = Path("tests/fuzzing/corpus")
FOUND = Path(".tools/fuzz-found")
"""Inputs that reached new code on this machine; the next fuzzing starts from them."""
WORDS = Path("tests/fuzzing/words.dict")

MAX_BYTES = 4096
MAX_SECONDS_FOR_ONE = 10


def main() -> None:
    """Fuzz each target for its share of the time; the exit code is 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long in all (default 5)")
    parser.add_argument("--only", choices=TARGETS, action="append", help="this target alone")
    arguments = parser.parse_args()
    names = arguments.only or list(TARGETS)
    seconds = max(1, round(60 * arguments.minutes / len(names)))
    failing = [name for name in names if not _holds(name, seconds)]
    if failing:
        sys.exit(f"Fails, with a new input in {CORPUS}: {', '.join(failing)}")


def _holds(name: str, seconds: int) -> bool:
    """Fuzz a target for so long, and return whether it holds."""
    print(f"== {name}, {seconds} s", flush=True)
    for folder in (CORPUS, FOUND):
        (PROJECT / folder / name).mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-m", "tests.fuzzing.one", name),
        f"-max_total_time={seconds}",
        f"-max_len={MAX_BYTES}",
        f"-timeout={MAX_SECONDS_FOR_ONE}",
        f"-dict={WORDS}",
        f"-artifact_prefix={CORPUS / name}/",
        "-print_final_stats=1",
        str(FOUND / name),  # the first folder is the one that is written to
        str(CORPUS / name),
    ]
    return subprocess.run(command, cwd=PROJECT, check=False).returncode == 0


if __name__ == "__main__":
    main()
