"""One target under libFuzzer: ``python -m tests.fuzzing.one TARGET [option or folder]…``."""

import os
import sys

import atheris

with atheris.instrument_imports(include=["tap_audit_events", "email", "http", "json"]):
    from tap_audit_events.errors import redaction
    from tests.fuzzing.targets import TARGETS


def main() -> None:
    """Fuzz up to the limit that the options set; libFuzzer then ends the process."""
    name, *options = sys.argv[1:]
    # libFuzzer starts itself again for some jobs, with a shell: a path with a space would break.
    again = f"{os.path.relpath(sys.executable)} -m tests.fuzzing.one {name}"

    def read(data: bytes) -> None:
        # Otherwise each search takes longer, until one exceeds its time.
        redaction._certain, redaction._all = redaction._Secrets(), redaction._Secrets()
        TARGETS[name](data)

    atheris.Setup([again, *options], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
