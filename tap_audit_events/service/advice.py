"""What to do about a refused request or certificate, depending on where its values come from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.instants import Instant, instant_of, seconds_between
from tap_audit_events.events.window import Origin, Window

_BUNDLES: Final = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_IGNORED_BUNDLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")

# What OpenSSL found, as in its header x509_vfy.h.
_NOT_VALID_NOW: Final = (9, 10)
_ANOTHER_HOST: Final = (62, 64)
_NOT_RFC_5280: Final = range(80, 95)
"""Only Python 3.13 and newer check these by default."""

_START: Final = {
    Origin.SETTING: "startTime comes from start_date or --start.",
    Origin.STATE: (
        "startTime comes from the state: it is the bookmark minus lookback_seconds. If the service"
        " does not keep events for so long, set start_date to the oldest time that it accepts:"
        " older events can no longer be read."
    ),
}
_END: Final = {
    Origin.SETTING: "endTime comes from end_date or --end.",
    Origin.CLOCK: "endTime is the time of this machine's clock",
}


def advice_on_bounds(window: Window, date: datetime | None) -> str:
    """Where the bounds of a refused request come from; `date` is the time of the response."""
    sentences = []
    if window.start_time is not None and window.start_origin is not None:
        sentences.append(_START[window.start_origin])
    if window.until is None and window.end_origin is not None:
        sentence = _END[window.end_origin]
        if window.end_origin is Origin.CLOCK:
            sentence += _advice_on_clock(window.end, date)
        sentences.append(sentence)
    return " ".join(sentences)


def _advice_on_clock(end: Instant, date: datetime | None) -> str:
    ahead = 0.0 if date is None else seconds_between(instant_of(date), end)
    if ahead < 1:
        return ": check that the clock is right."
    return f", which is {ahead:,.0f} s ahead of the service's: correct it, or set end_date."


def advice_on_certificate(cause: BaseException, environment: Mapping[str, str]) -> str:
    """What to do about a certificate that cannot be verified; empty if nothing more is known."""
    found = getattr(cause, "verify_code", None)
    if found in _NOT_RFC_5280:
        return (
            "Python 3.13 and newer refuse a certificate that does not follow RFC 5280, also if it"
            " is in your CA bundle. Ask whoever issued it for a corrected one: for a proxy that"
            " reads the traffic, those who run the proxy. Until then, run the tap with Python 3.12."
        )
    if found in _NOT_VALID_NOW:
        return (
            "Check this machine's clock. If it is right, the operator of the service, or of a proxy"
            " that reads the traffic, has to renew the certificate."
        )
    if found in _ANOTHER_HOST:
        return "Check the host in base_url: the certificate belongs to another one."
    return _advice_on_bundle(environment, is_read=found is not None)


def _advice_on_bundle(environment: Mapping[str, str], *, is_read: bool) -> str:
    named = next((name for name in _BUNDLES if environment.get(name)), None)
    if named is not None and not is_read:
        return (
            f"Check the file that {named} names, {sanitize(environment[named])}: it must be"
            " readable, and contain certificates in PEM form."
        )
    if named is not None:
        return (
            f"The CA bundle that {named} names, {sanitize(environment[named])}, is used, but lacks"
            " the authority that signed the certificate: add it. Check base_url too."
        )
    ignored = next((name for name in _IGNORED_BUNDLES if environment.get(name)), None)
    if ignored is not None:
        return f"{ignored} is not read: name your CA bundle in REQUESTS_CA_BUNDLE."
    return ""
