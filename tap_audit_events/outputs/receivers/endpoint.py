"""The URL of a receiver, and the secret that it wants."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from tap_audit_events.config.access_token import read_token_file
from tap_audit_events.config.checks import is_loopback
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.outputs.durable import unusable

SECRET_VARIABLE: Final = "AUDIT_EVENTS_RECEIVER_SECRET"  # noqa: S105 - a name
AUTHORIZATION: Final = "Authorization"

_PLACEHOLDER: Final = "{secret}"


@dataclass(frozen=True)
class Secret:
    """What a receiver wants to see: a token, ``user:password``, or a whole header.

    Attributes:
        text: the secret; empty if there is none.
        path: the file that holds it, None if it came from the environment.
        header: the header that carries it.
    """

    text: str = ""
    path: str | None = None
    header: str = AUTHORIZATION

    __repr__ = object.__repr__

    @classmethod
    def given(
        cls, path: str | None, header: str | None, environment: Mapping[str, str] = os.environ
    ) -> Secret:
        """The secret in a file, else in the environment.

        Raises:
            SettingsError: it cannot be read or sent.
        """
        text = environment.get(SECRET_VARIABLE, "") if path is None else read_secret(path)
        try:
            _check_secret(text)
        except ValueError as error:
            raise unusable(f"{SECRET_VARIABLE} {error}") from None
        name = header or AUTHORIZATION
        if not name.replace("-", "").isalnum() or not name.isascii():
            raise unusable(f"--secret-header {sanitize(name)} is not the name of a header")
        register(text)
        return cls(text, path, name)

    def renewed(self) -> Secret | None:
        """The secret that the file holds now; None if it is the same or cannot be read."""
        if self.path is None:
            return None
        try:
            text = read_secret(self.path)
        except SettingsError:  # it is being replaced; then the refusal of the old one counts
            return None
        register(text)
        return None if text == self.text else Secret(text, self.path, self.header)

    def value(self, scheme: str) -> str:
        """The value of the header.

        A secret with a space is the value already; ``user:password`` is sent as Basic; else
        the scheme comes before it, except in a header of another name.
        """
        if self.header.lower() != AUTHORIZATION.lower() or " " in self.text:
            return self.text
        if ":" in self.text:
            return f"Basic {b64encode(self.text.encode()).decode()}"
        return f"{scheme} {self.text}"


@dataclass(frozen=True)
class Endpoint:
    """Where a receiver is.

    Attributes:
        url: its URL, which may have the placeholder ``{secret}``.
        secret: its secret.
        name: what messages call it: no secret and no query is in it.
    """

    url: str
    secret: Secret
    name: str

    def full_url(self, path: str = "") -> str:
        """The URL with a further path, and with the secret in its place."""
        parts = urlsplit(self.url)
        whole = parts._replace(path=f"{parts.path.rstrip('/')}{path}" if path else parts.path)
        return whole.geturl().replace(_PLACEHOLDER, _in_url(self.secret.text))

    def headers(self, scheme: str) -> dict[str, str]:
        """The header with the secret; none if there is no secret or the URL carries it."""
        if not self.secret.text or _PLACEHOLDER in self.url:
            return {}
        return {self.secret.header: self.secret.value(scheme)}


def checked_endpoint(prefix: str, url: str, secret: Secret) -> Endpoint:
    """The endpoint of a URL.

    Args:
        prefix: what selects the kind of receiver, such as ``otlp:``; part of the name.
        url: the URL.
        secret: its secret.

    Raises:
        SettingsError: the URL cannot be used. The message does not contain it.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    if not host or not is_plain or parts.scheme not in {"https", "http"} or parts.fragment:
        raise unusable(f"--to {prefix}… needs a URL such as https://collector.example.com:8088")
    if parts.username is not None:
        raise _secret_elsewhere("--to contains a user or password, which other users can see")
    if _PLACEHOLDER in url and not secret.text:
        raise _secret_elsewhere(f"--to contains {_PLACEHOLDER}, but there is no secret")
    if secret.text and secret.text in url:
        raise _secret_elsewhere(f"--to contains the secret: write {_PLACEHOLDER} there")
    if parts.scheme == "http" and secret.text and not is_loopback(host):
        raise unusable(
            "--to must be https: over plain http the receiver's secret could be read on its way"
        )
    return Endpoint(url, secret, f"{prefix}{parts.scheme}://{parts.netloc}{parts.path}")


def read_secret(path: str) -> str:
    """The secret in a file; `SettingsError` if it cannot be read."""
    try:
        return read_token_file(path, _check_secret)
    except ValueError as error:
        raise SettingsError([f"--secret-file {error}"]) from None


def _check_secret(text: str) -> str:
    if text and not (text.isascii() and text.isprintable() and text == text.strip()):
        raise ValueError("must be one line of printable ASCII: look for a line break at its end")
    return text


def register(text: str) -> None:
    """Mask a secret, and its parts, from now on."""
    _, _, last = text.rpartition(" ")
    _, _, password = last.partition(":")
    encoded = b64encode(text.encode()).decode() if text else ""
    register_secret(text, last, password, encoded, _in_url(text))


def _in_url(text: str) -> str:
    """A secret as a part of a URL; one that is percent-encoded already stays as it is."""
    return quote(text, safe="%=")


def _secret_elsewhere(problem: str) -> SettingsError:
    return unusable(f"{problem}: set {SECRET_VARIABLE} or --secret-file to the secret")
