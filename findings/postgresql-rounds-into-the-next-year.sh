#!/usr/bin/env bash
# PostgreSQL 18.7 (PGlite 0.5.17, which runs in Node): if a text has more than six digits after the
# second, it is rounded, and not cut, when it becomes a timestamp. So the last tenth of a microsecond of
# a year is in the next year, and on another day.
#
# Seen: 2026-01-01
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit @electric-sql/pglite@0.5.17

cat > year.mjs <<'END'
import { PGlite } from "@electric-sql/pglite";

const database = new PGlite();
const query = "SELECT version(), CAST(TIMESTAMP '2025-12-31T23:59:59.9999999' AS date)::text AS day";
const { version, day } = (await database.query(query)).rows[0];
console.log(version, day);
process.exit(day === "2026-01-01" ? 0 : 1);
END
node year.mjs
