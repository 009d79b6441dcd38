"""Generates the reference in docs/python.md from the public classes and their docstrings."""

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from functools import cached_property
from typing import Any

import tap_audit_events
from tap_audit_events.errors import exceptions

CLASSES = ("AuditEvents", "EventPage", "OcsfMapping")
EXCEPTIONS = (
    "AuditEventsError",
    "SettingsError",
    "StoppedError",
    "OrganizationsError",
    "ServiceError",
    "RetryableError",
    "RefusedError",
    "ContractError",
)
_SECTION = re.compile(r"^(Args|Attributes|Raises|Example):$")
_ENTRY = re.compile(r"^(\w+): (.*)$", re.DOTALL)


def reference() -> str:
    """Describe every public class with its public methods and attributes, and the exceptions."""
    parts = [part for name in CLASSES for part in _class(getattr(tap_audit_events, name))]
    parts.append("### Exceptions")
    tree = inspect.cleandoc(exceptions.__doc__ or "").split("::\n\n", 1)[1]
    parts.append(f"```text\n{inspect.cleandoc(tree)}\n```")
    parts += [_exception(getattr(tap_audit_events, name)) for name in EXCEPTIONS]
    return "\n\n".join(parts) + "\n"


def _class(kind: type) -> Iterator[str]:
    name = kind.__name__
    yield f"### {name}"
    if name != "EventPage":  # users receive pages, and never create one
        yield _signature(name, kind)
    text = _text(kind)
    yield text if is_dataclass(kind) else text.split("\n\nArgs:")[0]
    for attribute, text in _attributes(kind):
        yield f"#### {name}.{attribute}\n\n{text[0].upper()}{text[1:]}"
    for attribute, value in vars(kind).items():
        if not attribute.startswith("_") and (member := _member(name, attribute, value)):
            yield member


def _member(owner: str, name: str, value: object) -> str | None:
    if name == "of_settings":  # it is for other parts of the package
        return None
    if isinstance(value, cached_property):
        return f"#### {owner}.{name}\n\n{_text(value.func)}"
    if isinstance(value, property):
        return f"#### {owner}.{name}\n\n{_text(value.fget)}"
    if not callable(value) and not isinstance(value, staticmethod | classmethod):
        return None  # the default of a field of a data class
    function: Any = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    return f"#### {owner}.{name}()\n\n{_signature(name, function)}\n\n{_text(function)}"


def _exception(kind: type) -> str:
    (summary, *_) = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    text = f"#### {kind.__name__}\n\n{_marked(summary)}"
    entries = _list(_attributes(kind))
    return f"{text}\n\n{entries}" if entries else text


def _attributes(kind: type) -> list[tuple[str, str]]:
    """Return the attributes that the docstring of a class describes."""
    section = re.search(r"Attributes:\n((?: +.*\n?)+)", inspect.getdoc(kind) or "")
    return _entry_texts(inspect.cleandoc(section[1])) if section else []


def _signature(name: str, function: Any) -> str:
    given = inspect.signature(function)
    parameters = [each for each in given.parameters.values() if each.name not in {"self", "cls"}]
    lines = [f"    {each}," for each in parameters if each.kind != inspect.Parameter.KEYWORD_ONLY]
    keywords = [
        f"    {each}," for each in parameters if each.kind == inspect.Parameter.KEYWORD_ONLY
    ]
    lines += ["    *,", *keywords] if keywords else []
    returns = (
        ""
        if given.return_annotation in (inspect.Signature.empty, None, "None")
        else (f" -> {given.return_annotation}")
    )
    inside = "\n" + "\n".join(lines) + "\n" if lines else ""
    return f"```text\n{name}({inside}){returns}\n```".replace("'", "").replace("<factory>", "{}")


def _text(documented: Any) -> str:
    """Return a docstring as Markdown: its paragraphs, and lists of arguments and errors."""
    paragraphs = inspect.cleandoc(documented.__doc__ or "").split("\n\n")
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)


def _paragraph(text: str) -> str:
    title, _, body = text.partition("\n")
    if not _SECTION.match(title):
        return _marked(text)
    if title == "Example:":
        return f"```pycon\n{inspect.cleandoc(body)}\n```"
    return f"{title}\n\n{_list(_entry_texts(inspect.cleandoc(body)))}"


def _list(entries: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- `{name}`: {meaning}" for name, meaning in entries)


def _entry_texts(body: str) -> list[tuple[str, str]]:
    """Return the entries of a section; an indented line continues an entry."""
    joined = re.sub(r"\n +", " ", body)
    matches = [_ENTRY.match(line) for line in joined.splitlines()]
    return [(found[1], _marked(found[2])) for found in matches if found]


def _marked(text: str) -> str:
    """Join lines, and replace the two backquotes of reStructuredText by the one of Markdown."""
    return re.sub(r"\s*\n\s*", " ", text).replace("``", "`")
