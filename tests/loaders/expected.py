"""What each loader does to the hostile events, as observed once and written down by hand.

An event or a field that is not listed is kept. For events other than the plain one, what happens to
the same field of the plain event is not listed again.
"""

from typing import Final

from tests.loaders.comparison import (
    CUT,
    DOUBLE,
    EMPTY_OBJECT_LOST,
    EMPTY_TEXT_LOST,
    JSON_TEXT,
    LOST,
    NULL_LOST,
    PYTHON_TEXT,
    REFUSED,
    ROUNDED,
    Changes,
)

_UNKNOWN_LOST: Final = {"unknown fields": {"severity": LOST, "tags": LOST}}
_EXACT_LOST: Final = {"exact decimal": {"action.details.ratio": DOUBLE}}
_CUT: Final = {"nine digits": {"occurredAt": CUT}}
_ROUNDED: Final = {"nine digits": {"occurredAt": ROUNDED}}
_OBJECTS: Final = ("action", "actor", "context", "scope", "entity")

EXPECTED: Final[dict[str, dict[str, Changes]]] = {
    "target-jsonl": {},
    "target-jsonl, behind meltano-map-transform": {},
    "meltanolabs-target-csv": {
        "plain": dict.fromkeys(_OBJECTS, PYTHON_TEXT),
        "unknown fields": {"": REFUSED},
        **_CUT,
    },
    "meltanolabs-target-csv, flattening": {
        "plain": {"action.details": JSON_TEXT},
        "unknown fields": {"": REFUSED},
        "unknown nested fields": {"": REFUSED},
        "missing fields": {"context": EMPTY_OBJECT_LOST, "entity": EMPTY_OBJECT_LOST},
        "null fields": {
            "actor.name": NULL_LOST,
            "actor.email": NULL_LOST,
            "context": NULL_LOST,
            "entity": NULL_LOST,
        },
        "quotes": {"actor.email": EMPTY_TEXT_LOST},
        **_CUT,
    },
    "meltanolabs-target-csv, stream map": {},
    "target-duckdb": {**_UNKNOWN_LOST, **_EXACT_LOST, **_CUT},
    "target-duckdb, raw_event": {"1 MB": {"": REFUSED}},
    "meltanolabs-target-postgres": {**_UNKNOWN_LOST, **_CUT},
    "meltanolabs-target-postgres, COPY": {**_UNKNOWN_LOST, **_CUT},
    "meltanolabs-target-postgres, BATCH": {**_UNKNOWN_LOST, **_ROUNDED},
    "meltanolabs-target-postgres, raw_event": {},
    "pipelinewise-target-postgres": {**_UNKNOWN_LOST, **_EXACT_LOST, **_ROUNDED},
    "pipelinewise-target-postgres, raw_event": {},
    "target-elasticsearch": {**_EXACT_LOST, **_CUT},
    "target-elasticsearch, raw_event": {},
    "z3-target-bigquery": {"2^70": {"": REFUSED}, **_EXACT_LOST},
    "z3-target-bigquery, details as text": {},
}
