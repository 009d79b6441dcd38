"""What a run begins with: the watermark in a state, and warnings about what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from logging import Logger
from typing import Any

from tap_audit_events.config.settings import Settings
from tap_audit_events.events.instants import instant_of
from tap_audit_events.extraction.run_state import from_run_state, types_never_requested
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.reporting.start_warnings import start_warnings, widened_warning
from tap_audit_events.runtime import Runtime


def resume(
    settings: Settings, state: Mapping[str, Any], *, runtime: Runtime, logger: Logger
) -> Watermark:
    """The watermark of a state, for a run with these settings; `warn_of_gaps` is called with it.

    Raises:
        SettingsError: it is not such a state, or belongs to another organization.
    """
    watermark = from_run_state(
        state,
        organization_id=settings.organization_id,
        lookback_seconds=settings.lookback_seconds,
    )
    warn_of_gaps(watermark, state, settings, runtime=runtime, logger=logger)
    return watermark


def warn_of_gaps(
    watermark: Watermark,
    state: Mapping[str, Any],
    settings: Settings,
    *,
    runtime: Runtime,
    logger: Logger,
) -> None:
    """Warn of events that neither this run nor later ones will bring.

    The state is what `to_run_state` returned for the watermark, empty for a first run.
    """
    if (added := types_never_requested(state, settings.action_types)) is not None:
        logger.warning("%s", widened_warning(added))
    for warning in start_warnings(watermark, settings, instant_of(runtime.now())):
        logger.warning("%s", warning)
