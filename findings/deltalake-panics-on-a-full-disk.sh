#!/usr/bin/env bash
# deltalake 1.6.6: if a file cannot be written because the disk is full (here: because of `ulimit -f`),
# the error is raised, and besides, threads of the library panic and print `Already shut down` to
# stderr, once or more for each partition.
#
# Seen: OSError or DeltaError with `File too large (os error 27)`, and lines with `panicked at`
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'deltalake==1.6.6' 'pyarrow==26.0.1'

cat >write.py <<'END'
import pyarrow
from deltalake import write_deltalake

ids = [f"{n * 2654435761 % 2**32:08x}" for n in range(20_000)]
days = [n % 5 for n in range(20_000)]
try:
    write_deltalake("t", pyarrow.table({"id": ids, "day": days}), partition_by=["day"])
except Exception as error:
    print(f"{type(error).__name__}: {error}")
    raise SystemExit("os error 27" not in str(error))
raise SystemExit("it was written")
END
(ulimit -f 8 && exec venv/bin/python write.py 2>stderr)
grep --count 'panicked at' stderr
