"""Mutation testing: which small mistakes in the code no test would notice."""

from typing import Final

MODULES: Final = "MUTATION_MODULES"
"""The environment variable that names the modules in question, separated by spaces."""

_PAGES = ("events/test_envelope", "events/test_text_repair", "events/test_page")
_CLIENTS = (
    "service/test_client_requests",
    "service/test_client_responses",
    "service/test_waits",
    "service/test_client",
    "service/test_secure_connection",
)
_INSTANTS = ("events/test_instants", "events/test_window")

TESTS_OF: Final = {
    "errors.redaction": ("errors/test_secrets",),
    "events.envelope": _PAGES,
    "events.exact_json": ("events/test_exact_json",),
    "events.instants": _INSTANTS,
    "events.page": _PAGES,
    "events.text_repair": _PAGES,
    "events.window": _INSTANTS,
    "extraction.delivery": ("extraction/test_delivery", "extraction/test_delivery_of_windows"),
    "extraction.id_groups": (
        "extraction/test_id_groups",
        "extraction/test_watermark_bounds",
        "extraction/test_watermark",
    ),
    "extraction.planning.concurrency": ("extraction/planning/test_concurrency",),
    "extraction.planning.forecast": (
        "extraction/planning/test_forecast",
        "extraction/planning/test_forecast_of_growth",
    ),
    "extraction.planning.pagination": ("extraction/planning/test_pagination",),
    "extraction.planning.plan": (
        "extraction/planning/test_plan_room",
        "extraction/planning/test_plan",
        "extraction/planning/test_plan_faults",
    ),
    "extraction.planning.request_budget": ("extraction/planning/test_request_budget",),
    "extraction.planning.window_reader": (
        "extraction/planning/test_window_restarts",
        "extraction/planning/test_window_reader",
    ),
    "extraction.planning.window_sizes": (
        "extraction/planning/test_window_sizes",
        "extraction/planning/test_plan",
    ),
    "extraction.run_state": (
        "extraction/test_run_state",
        "singer/test_state",
        "api/test_run_states",
    ),
    "extraction.shutdown": ("extraction/test_workers_ending",),
    "extraction.watermark": (
        "extraction/test_watermark_bounds",
        "extraction/test_watermark",
        "extraction/test_covered_from",
    ),
    "extraction.workers": ("extraction/test_workers", "extraction/test_workers_ending"),
    "run.failures": ("reporting/test_connection_test",),
    "run.organizations_plan": ("run/test_organizations_plan", "run/test_organizations_held"),
    "service.adaptive_rate": ("service/test_adaptive_rate", "service/test_adaptive_rate_runs"),
    "service.authenticator": ("service/test_authenticator",),
    "service.client": _CLIENTS,
    "service.connection": (
        "service/test_connection",
        "service/test_secure_connection",
        "service/test_closing",
    ),
    "service.proxies": ("service/test_proxy_urls",),
    "service.rate_limiter": ("service/test_rate_limiter", "service/test_several_tokens"),
    "service.responses": (
        "service/test_responses",
        "service/test_client_responses",
        "service/test_body",
    ),
    "service.retries": ("service/test_retries", "service/test_retry_after"),
}
"""The modules that are mutated, with the files of their unit tests, which start no processes."""


def module_of(mutant: str) -> str:
    """The key of `TESTS_OF` for the name of a mutant in mutmut; empty if the name is empty."""
    return mutant.partition("tap_audit_events.")[2].rpartition(".")[0]
