"""Gathers the findings of the tests, and updates the documents that show them.

Usage: ``python -m tests.loaders.report FOLDER``
"""

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.report import generator
from tests.loaders.cases import CASES
from tests.loaders.findings import REPORT, CaseReport, Report
from tests.loaders.pipeline import PROJECT
from tests.loaders.tables import PARTS


def gather(folder: Path) -> Report:
    """The report of the findings that tests have written to a folder."""
    found: dict[str, dict[str, Any]] = {}
    for file in folder.glob("*.json"):
        for case, parts in msgspec.json.decode(file.read_bytes()).items():
            found.setdefault(case, {}).update(parts)
    return Report(
        date=datetime.now(UTC).date().isoformat(),
        machine={"cores": str(os.cpu_count()), "Python": platform.python_version()},
        cases={case.name: msgspec.convert(found[case.name], CaseReport) for case in CASES},
    )


def pages(report: Report) -> dict[Path, str]:
    """The text of each page, with its generated parts replaced."""
    updated = {}
    for name, parts in PARTS.items():
        path = PROJECT / "docs" / name
        text = path.read_text()
        for part, content in parts.items():
            text = generator().with_part(text, part, content(report))
        updated[path] = text
    return updated


def main(folder: str) -> None:
    report = gather(Path(folder))
    REPORT.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    for path, text in pages(report).items():
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1])
