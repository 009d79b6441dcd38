"""The subcommand `verify`: reads a range again, and compares it with what was loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from itertools import product
from os.path import exists
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.count import TABLE_FORMATS
from tap_audit_events.cli.loaded.files import SUFFIXES
from tap_audit_events.cli.loaded.row import Loaded, Range, Row, organization_form, unreadable
from tap_audit_events.cli.loaded.sources import open_loaded
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.proof.comparison import Comparison, Counts, Key
from tap_audit_events.cli.proof.difference_lists import DifferenceLists
from tap_audit_events.cli.proof.repair import (
    JsonLinesRepair,
    Repair,
    SingerRepair,
    check_columns,
)
from tap_audit_events.cli.terminal.process import ReaderGoneError, write_stdout
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.cli.terminal.signals import interrupting
from tap_audit_events.cli.terminal.temporary_folder import temporary_folder
from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import OutputError, SettingsError, sanitize
from tap_audit_events.events.exact_json import decode_with
from tap_audit_events.events.instants import EARLIEST, instant_of, whole_second
from tap_audit_events.outputs.durable import (
    check_files_differ,
    output_errors,
    resolved,
    unusable,
)
from tap_audit_events.outputs.whole_file import WholeFile

COLUMNS: Final = ("day", *(field.name for field in fields(Counts)))

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
    _check_files(options)
    config = {} if options.repair is None else common.config()
    settings = common.settings_of(config) if config else common.settings()
    now = whole_second(instant_of(datetime.now(UTC)))
    end = min(settings.end_date or now, now)
    within = Range(settings.start_date or EARLIEST, end)
    if within.start > within.end:
        problem = "--start or start_date lies in the future: there is nothing to compare yet"
        raise SettingsError([problem])
    with ExitStack() as stack:
        known = _organizations_of(settings)
        place = stack.enter_context(ExitStack())
        with interrupting(common.stop):
            loaded = place.enter_context(open_loaded(options.against, options.table, known))
        if settings.organizations and not loaded.has_organizations:
            raise unreadable(loaded.name, "it has no column organization_id, but the settings name"
                             " several organizations")  # fmt: skip
        if settings.action_types:
            common.logger.warning(
                "action_types is set: loaded events of other types count as too many"
            )
        with output_errors(temporary_folder()):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="audit-events-")))
        with output_errors(folder):
            comparison = Comparison(folder / "rows", within, loaded.unit_nanoseconds)
        stack.callback(comparison.close)
        list_file = _new_file(options.list_file, stack)
        repair_file = _new_file(options.repair, stack)
        lists = DifferenceLists(list_file)
        repair = None
        if repair_file is not None:
            repair = _repair(options, config, settings, common, repair_file)
            repair.start()
        verification = Verification(settings, common, comparison, lists, repair)
        verification.read_loaded(loaded, within)
        if repair is not None and options.catalog is None:
            check_columns(repair, loaded)
        place.close()  # before the first request: a loader may be waiting for the database
        verification.read_service(within.widened(loaded.unit_nanoseconds))
        for file in filter(None, (list_file, repair_file)):
            file.commit()
    if lists.totals.get("missing") and isinstance(repair, SingerRepair) and not options.catalog:
        common.logger.warning(
            "The file of --repair has every field that stream_maps keep: if the tap runs with a"
            " catalog that deselects fields, run again with --catalog"
        )
    with suppress(ReaderGoneError):  # a difference is an error, even if nobody reads the output
        _print(options.format_, comparison.days, lists)
    _raise_if_different(lists)


def _repair(
    options: VerifyOptions,
    config: dict[str, Any],
    settings: Settings,
    common: Common,
    file: WholeFile,
) -> Repair:
    if options.repair_format == "jsonl":
        has_catalog = options.catalog is not None
        return JsonLinesRepair(config, has_catalog=has_catalog, write=file.write_bytes)
    catalog = None if options.catalog is None else read_json_file("catalog", options.catalog)
    runtime, write = common.runtime(), file.write_bytes
    return SingerRepair(config, settings, catalog, runtime=runtime, write=write)


def _new_file(path: Path | None, stack: ExitStack) -> WholeFile | None:
    if path is None:
        return None
    return stack.enter_context(closing(WholeFile(path)))


def _check_files(options: VerifyOptions) -> None:
    """Raise `SettingsError` if a new file would replace another, or count as a loaded file."""
    if options.catalog is not None and options.repair is None:
        raise SettingsError(["--catalog is for the file of --repair: give both"])
    options_to_write = {"--repair": options.repair, "--list": options.list_file}
    written = {option: path for option, path in options_to_write.items() if path is not None}
    # What does not exist may be a URL, whose password an error would show.
    is_path = exists(options.against)  # noqa: PTH110 - no error for any text
    loaded = {"--against": Path(options.against)} if is_path else {}
    check_files_differ(loaded | written)
    for (option, path), folder in product(written.items(), loaded.values()):
        if resolved(folder) in resolved(path).parents and path.name.endswith(SUFFIXES):
            raise unusable(f"{option} is in the folder that --against names, and would count as"
                           " loaded: choose another folder")  # fmt: skip


class Verification:
    """Compares what was loaded with the service; lists and repairs the differences."""

    def __init__(
        self,
        settings: Settings,
        common: Common,
        comparison: Comparison,
        lists: DifferenceLists,
        repair: Repair | None,
    ) -> None:
        self._settings = settings
        self._common = common
        self._comparison = comparison
        self._lists = lists
        self._repair = repair
        self._known = _organizations_of(settings)

    def read_loaded(self, loaded: Loaded, within: Range) -> None:
        """Read what was loaded, without the events of organizations that are not in the settings.

        Raises:
            OutputError: it cannot be read.
            StoppedError: a signal asked the run to stop.
        """
        reporter = Reporter(within.end, quiet=self._common.quiet)
        disk = temporary_folder()
        read = kept = 0
        with closing(reporter), interrupting(self._common.stop):
            for batch in loaded.rows(within):
                rows = list(self._of_settings(batch, loaded.name))
                read, kept = read + len(batch), kept + len(rows)
                with output_errors(disk):
                    self._comparison.add_rows(rows)
                reporter.rows(self._comparison.rows)
            if read and not kept and loaded.guesses_organizations:
                raise unreadable(loaded.name, _ALL_OF_OTHERS)
            with output_errors(disk):
                self._comparison.all_rows_added()

    def read_service(self, wide: Range) -> None:
        """Read the range from the service, and compare.

        Raises:
            AuditEventsError: not all events could be read.
        """
        start = None if wide.start == EARLIEST else wide.start
        settings = replace(self._settings, start_date=start, end_date=wide.end)
        reporter = Reporter(wide.end, quiet=self._common.quiet)
        with (
            closing(reporter),
            closing(self._common.events_of(settings).pages()) as pages,
        ):
            for page in pages:
                self._compare(page)
                reporter.page(page)
        self._lists.add(self._comparison.too_many())
        # Not those next to the range, which are read as the table may have rounded their times.
        reporter.events = sum(each.service for each in self._comparison.days.values())
        reporter.done("Compared")

    def _compare(self, page: EventPage) -> None:
        found = self._comparison.compare(self._keys(page))
        self._lists.add(difference for _, difference in found)
        if self._repair is not None:
            missing = [position for position, each in found if each.kind == "missing"]
            self._repair.write(page, missing)

    def _keys(self, page: EventPage) -> Iterator[Key]:
        organization = page.organization_id.lower() if self._settings.organizations else ""
        for text, instant in zip(page.raw, page.instants, strict=True):
            yield Key(organization, decode_with(_decode_id, text).id, instant)

    def _of_settings(self, batch: Sequence[Row], name: str) -> Iterator[Row]:
        for row in batch:
            organization = organization_form(row.organization_id or "")
            if not organization and self._settings.organizations:
                raise unreadable(name, f"event {sanitize(row.id or '')} {_NO_ORGANIZATION}")
            if not organization or organization in self._known:
                key = organization if self._settings.organizations else ""
                yield Row(key, row.id or "", row.time)


def _organizations_of(settings: Settings) -> set[str]:
    return {each.organization_id.lower() for each in settings.each()}


def _print(format_: str, days: dict[str, Counts], lists: DifferenceLists) -> None:
    rows = [_row(day, days[day]) for day in sorted(days)]
    if format_ == "table":
        total = Counts(*(sum(row[name] for row in rows) for name in COLUMNS[1:]))
        rows.append(_row("total", total))
    text = TABLE_FORMATS[format_](list(COLUMNS), rows)
    if format_ == "table":
        text += lists.text()
    write_stdout(text.encode())


def _row(day: str, counts: Counts) -> dict[str, Any]:
    return {"day": day} | asdict(counts)


def _raise_if_different(lists: DifferenceLists) -> None:
    if lists.totals:
        found = ", ".join(f"{count:,} {kind}" for kind, count in lists.totals.items())
        raise OutputError(found, "AE-DIFFERENT")
