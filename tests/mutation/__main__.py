"""Mutation testing: ``python -m tests.mutation extraction.watermark events``.

Makes small changes to the code, one at a time, and runs the tests of the changed module. A change
that no test notices survives and is shown: a test is missing, or the change makes no difference.
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

from tests.mutation import MODULES, TESTS_OF

PACKAGE = "tap_audit_events"
KILLED = frozenset({"killed", "timeout"})


class Survivor(NamedTuple):
    """A change that no test notices.

    Attributes:
        name: the name of the mutant in mutmut.
        function: its module and function, such as ``events.window.Window.holds``.
        before: the changed lines as they were, without indentation.
        after: the changed lines as they are.
    """

    name: str
    function: str
    before: str
    after: str


def main() -> None:
    """Test the mutants of some modules, and show those that survive."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="folders or modules, such as events.window; default all"
    )
    parser.add_argument("--report", action="store_true", help="only show the results of before")
    arguments = parser.parse_args()
    modules = [each for each in TESTS_OF if is_wanted(each, arguments.names)]
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
    """Print the survivors and the score of each folder."""
    killed, survived = Counter[str](), Counter[str]()
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        names = [name for name in data.exit_code_by_key if name.startswith(wanted)]
        folder = ".".join(path.with_suffix("").parts[1:2])
        killed[folder] += sum(status(data, name) in KILLED for name in names)
        for survivor in survivors(data, names):
            survived[folder] += 1
            print(f"{survivor.name}: {status(data, survivor.name)}")
            print(f"  {survivor.function}\n  - {survivor.before}\n  + {survivor.after}")
    for folder in sorted(killed):
        total = killed[folder] + survived[folder]
        if total:
            print(f"{folder}: {killed[folder]} of {total} mutants killed")


def status(data: SourceFileMutationData, name: str) -> str:
    """The result of a mutant, such as ``killed``."""
    return str(status_by_exit_code[data.exit_code_by_key[name]])


def survivors(data: SourceFileMutationData, names: Iterable[str]) -> Iterator[Survivor]:
    """The mutants that were not killed."""
    for name in names:
        if status(data, name) in KILLED:
            continue
        lines = str(get_diff_for_mutant(name, path=data.path)).splitlines()[3:]
        before = [line[1:].strip() for line in lines if line.startswith("-")]
        after = [line[1:].strip() for line in lines if line.startswith("+")]
        yield Survivor(name, function_of(name), " ".join(before), " ".join(after))


def function_of(name: str) -> str:
    """The function of a mutant: ``a.b.xǁCǁd__mutmut_1`` is in ``b.C.d``."""
    module, _, function = name.rpartition("__mutmut_")[0].rpartition(".")
    path = function.removeprefix("xǁ").removeprefix("x_").replace("ǁ", ".")
    return f"{module.removeprefix(f'{PACKAGE}.')}.{path}"


if __name__ == "__main__":
    main()
