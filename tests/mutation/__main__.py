"""Mutation testing: ``python -m tests.mutation extraction.watermark events``.

Makes small changes to the code, one at a time, and runs the tests of the changed module. A change
that no test notices survives and is shown: a test is missing, or the change makes no difference.
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

from tests.mutation import MODULES

PACKAGE = "tap_audit_events"
KILLED = frozenset({"killed", "timeout"})


def main() -> None:
    """Test the mutants of some modules, and show those that survive."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="folders or modules, such as events.window; default all"
    )
    parser.add_argument("--report", action="store_true", help="only show the results of before")
    arguments = parser.parse_args()
    files = [path.with_suffix("").parts[1:] for path in walk_mutatable_files()]
    modules = [each for each in map(".".join, files) if is_wanted(each, arguments.names)]
    if not arguments.report:
        patterns = [f"{PACKAGE}.{module}.*" for module in modules]
        subprocess.run(
            [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *patterns],
            env={**os.environ, MODULES: " ".join(modules)},
            check=True,
        )
    report(tuple(f"{PACKAGE}.{module}." for module in modules))


def is_wanted(module: str, names: Sequence[str]) -> bool:
    """Whether the names include a module or its folder; no names mean every module."""
    return not names or any(f"{module}.".startswith(f"{name}.") for name in names)


def report(wanted: tuple[str, ...]) -> None:
    """Print the mutants that survived, with their changed lines, and the score of each folder."""
    killed, survived = Counter[str](), Counter[str]()
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        folder = path.parts[1]
        for name, exit_code in data.exit_code_by_key.items():
            if not name.startswith(wanted):
                continue
            if (status := status_by_exit_code[exit_code]) in KILLED:
                killed[folder] += 1
                continue
            survived[folder] += 1
            print(f"{name}: {status}")
            lines = str(get_diff_for_mutant(name, path=path)).splitlines()[3:]
            print("\n".join(f"  {line}" for line in lines if line.startswith(("-", "+"))))
    for folder in sorted({*killed, *survived}):
        total = killed[folder] + survived[folder]
        print(f"{folder}: {killed[folder]} of {total} mutants killed")


if __name__ == "__main__":
    main()
