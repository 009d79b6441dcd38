"""The subcommand `verify`: reads a range again, and compares it with what was loaded."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from os.path import exists
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from tap_audit_events.cli.loaded.batches import Loaded, Range, unreadable
from tap_audit_events.cli.loaded.database import temporary_database
from tap_audit_events.cli.loaded.files import SUFFIXES
from tap_audit_events.cli.loaded.sources import open_loaded
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.proof.comparison import COUNTS, Comparison
from tap_audit_events.cli.proof.differences import DifferenceLists
from tap_audit_events.cli.proof.kept_pages import KeptPages
from tap_audit_events.cli.proof.repair import (
    Repair,
    check_columns,
    json_lines_repair,
    singer_repair,
)
from tap_audit_events.cli.terminal.process import ReaderGoneError, write_stdout
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.cli.terminal.tables import TABLE_FORMATS
from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import OutputError, SettingsError, sanitize
from tap_audit_events.events.exact_json import decode_with
from tap_audit_events.events.instants import EARLIEST, instant_of, whole_second
from tap_audit_events.extraction.shutdown import interrupting
from tap_audit_events.outputs.durable import (
    check_files_differ,
    output_errors,
    resolved,
    unusable,
)
from tap_audit_events.outputs.whole_file import WholeFile

_NO_ORGANIZATION: Final = "does not say its organization: with several, each needs organization_id"
_ALL_OF_OTHERS: Final = (
    "no event is of an organization in the settings: each needs its UUID, as organization_id or"
    " scope.organizationId"
)


class _Identified(msgspec.Struct, gc=False):
    id: str


_decode_id = msgspec.json.Decoder(_Identified).decode


@dataclass(frozen=True)
class VerifyOptions:
    """The options that only `verify` has.

    Attributes:
        against: what was loaded: a file, a folder or a database.
        table: its table, None for the usual one.
        repair: the file for missing events, if any.
        repair_format: its format.
        catalog: the file of the tap's catalog, if any, for the repair.
        list_file: the file for all events that differ, if any.
        format_: how to print the counts.
    """

    against: str
    table: str | None
    repair: Path | None
    repair_format: str
    catalog: str | None
    list_file: Path | None
    format_: str


def run_verify(options: VerifyOptions, common: Common) -> None:
    """Compare, and print the counts of each day and, below a table, events that differ.

    Raises:
        OutputError: the loaded events are not those of the service (``AE-DIFFERENT``), or cannot
            be read.
        AuditEventsError: not all events could be read; nothing is printed then.
    """
    config = {} if options.repair is None else common.config()
    settings = common.settings_of(config) if config else common.settings()
    _check_files(options, settings.quarantine_file)
    within = _range_of(settings)
    organizations = [each.organization_id.lower() for each in settings.each()]
    with temporary_database() as database, ExitStack() as files:
        with ExitStack() as opened:  # closed before the first request: a loader may be waiting
            with interrupting(common.stop):
                loaded = opened.enter_context(
                    open_loaded(options.against, options.table, database, organizations)
                )
            if settings.organizations and not loaded.has_organizations:
                raise unreadable(loaded.name, "it has no column organization_id, but the settings"
                                 " name several organizations")  # fmt: skip
            if settings.action_types:
                common.logger.warning(
                    "action_types is set: loaded events of other types count as too many"
                )
            if settings.exclude_action_types:
                common.logger.warning(
                    "exclude_action_types is set: loaded events of these types count as too many"
                )
            comparison = Comparison(
                database,
                within,
                loaded.unit_nanoseconds,
                organizations,
                are_several=bool(settings.organizations),
            )
            lists = DifferenceLists(list_file := _new_file(options.list_file, files))
            repair_file = _new_file(options.repair, files)
            repair = repair_file and _repair(options, config, settings, common, repair_file)
            read_loaded(loaded, within, comparison, common)
            if repair and options.catalog is None:
                check_columns(repair, loaded)
        with output_errors(database.folder):
            kept = KeptPages(database.folder / "pages") if repair else None
        missing = _read_service(settings, comparison, lists, kept, common)
        if repair and kept:
            with output_errors(database.folder):
                for organization_id, texts in kept.events(missing):
                    repair.write(organization_id, texts)
        for file in filter(None, (list_file, repair_file)):
            file.commit()
    if missing and repair and options.repair_format == "singer" and not options.catalog:
        common.logger.warning(
            "The file of --repair has every field that stream_maps keep: if the tap runs with a"
            " catalog that deselects fields, run again with --catalog"
        )
    with suppress(ReaderGoneError):  # a difference is an error, even if nobody reads the output
        _print(options.format_, comparison.days, lists)
    if found := lists.summary():
        raise OutputError(found, "AE-DIFFERENT")


def _range_of(settings: Settings) -> Range:
    now = whole_second(instant_of(datetime.now(UTC)))
    within = Range(settings.start_date or EARLIEST, min(settings.end_date or now, now))
    if within.start > within.end:
        problem = "--start or start_date lies in the future: there is nothing to compare yet"
        raise SettingsError([problem])
    return within


def _repair(
    options: VerifyOptions,
    config: dict[str, Any],
    settings: Settings,
    common: Common,
    file: WholeFile,
) -> Repair:
    write = file.write_bytes
    if options.repair_format == "jsonl":
        return json_lines_repair(config, has_catalog=options.catalog is not None, write=write)
    catalog = None if options.catalog is None else read_json_file("catalog", options.catalog)
    return singer_repair(config, settings, catalog, runtime=common.runtime(), write=write)


def _new_file(path: Path | None, stack: ExitStack) -> WholeFile | None:
    if path is None:
        return None
    return stack.enter_context(closing(WholeFile(path)))


def _check_files(options: VerifyOptions, quarantine_file: str | None) -> None:
    """Raise `SettingsError` if a new file would replace another, or count as a loaded file."""
    if options.catalog is not None and options.repair is None:
        raise SettingsError(["--catalog is for the file of --repair: give both"])
    quarantine = None if quarantine_file is None else Path(quarantine_file)
    options_to_write = {
        "--repair": options.repair, "--list": options.list_file, "--quarantine": quarantine
    }  # fmt: skip
    written = {option: path for option, path in options_to_write.items() if path is not None}
    # What does not exist may be a URL, whose password an error would show.
    is_path = exists(options.against)  # noqa: PTH110 - no error for any text
    loaded = {"--against": Path(options.against)} if is_path else {}
    check_files_differ(loaded | written)
    for (option, path), folder in product(written.items(), loaded.values()):
        if resolved(folder) in resolved(path).parents and path.name.endswith(SUFFIXES):
            raise unusable(f"{option} is in the folder that --against names, and would count as"
                           " loaded: choose another folder")  # fmt: skip


def read_loaded(loaded: Loaded, within: Range, comparison: Comparison, common: Common) -> None:
    """Read what was loaded, without the events of organizations that are not in the settings.

    Raises:
        OutputError: it cannot be read.
        StoppedError: a signal asked the run to stop.
    """
    is_any, has_batch = not loaded.guesses_organizations, False
    with (
        closing(Reporter(within.end, quiet=common.quiet)) as reporter,
        interrupting(common.stop),
    ):
        for batch in loaded.batches(within):
            is_any = is_any or comparison.has_any_in_settings(batch)
            reporter.rows(comparison.add_loaded(batch))
            has_batch = True
        if has_batch and not is_any:
            raise unreadable(loaded.name, _ALL_OF_OTHERS)
        event_id = comparison.id_without_organization()
    if event_id is not None:
        raise unreadable(loaded.name, f"event {sanitize(event_id)} {_NO_ORGANIZATION}")


def _read_service(
    settings: Settings,
    comparison: Comparison,
    lists: DifferenceLists,
    kept: KeptPages | None,
    common: Common,
) -> Sequence[int]:
    """Read the range from the service, compare, and return the numbers of missing events.

    Raises:
        AuditEventsError: not all events could be read.
    """
    start, end = comparison.wide.start, comparison.wide.end
    events = common.events_of(
        structs.replace(settings, start_date=None if start == EARLIEST else start, end_date=end)
    )
    missing = array("q")
    with (
        closing(Reporter(end, quiet=common.quiet)) as reporter,
        closing(events.pages()) as pages,
    ):
        for page in pages:
            ids = [decode_with(_decode_id, text).id for text in page.raw]
            comparison.add_service(page.organization_id, ids, page.instants)
            if kept is not None:
                with output_errors(kept.path):
                    kept.add(page)
            reporter.page(page)
        with interrupting(common.stop):
            for number, difference in comparison.differences():
                lists.add(difference)
                if difference.kind == "missing":
                    missing.append(number)
        # Not those next to the range, which are read as the table may have rounded their times.
        reporter.events = sum(day["service"] for day in comparison.days.values())
        reporter.done("Compared")
    return missing


def _print(format_: str, days: dict[str, Counter[str]], lists: DifferenceLists) -> None:
    rows = [_row(day, counts) for day, counts in sorted(days.items())]
    if format_ == "table":
        rows.append(_row("total", sum(days.values(), Counter())))
    text = TABLE_FORMATS[format_](["day", *COUNTS], rows)
    if format_ == "table":
        text += lists.text()
    write_stdout(text.encode())


def _row(day: str, counts: Counter[str]) -> dict[str, Any]:
    return {"day": day} | {name: counts[name] for name in COUNTS}
