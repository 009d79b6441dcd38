# `make` alone lists the commands. They need git, make, and Python 3.11, 3.12 or 3.13.
#
# Everything is installed into this folder (.venv, .tools, .meltano) from exact pins with hashes. Outside
# of it only caches change. Paths are relative, so that the folder may have a space in its name. Stamp
# files make the second run quick.

PYTHON ?= python3
MATRIX ?= 3.11 3.12 3.13 3.14
PYTEST_ARGS ?= -n auto --dist worksteal
MINUTES ?= 5
REPETITIONS ?= 3

# What `make test-loaders` installs, each in an environment of its own: requirements/NAME.txt.
LOADERS := target-jsonl meltanolabs-target-csv target-duckdb target-duckdb-newest meltanolabs-target-postgres \
	pipelinewise-target-postgres target-elasticsearch z3-target-bigquery meltano-map-transform postgres-server
# What `make test-integrations` installs, each in an environment of its own: requirements/NAME.txt.
CLIENTS := airbyte-clients dlt dagster readers $(if $(shell command -v java),spark) tenzir proof site loader-postgres-server
# The clients and the tools of this project, each from requirements/NAME.txt.
ENVIRONMENTS := meltano release audit oldest bench bench-airbyte bench-dlt airbyte-clients dlt dagster readers spark spark-source tenzir proof site
# The base of the image in its test, which needs buildah, debootstrap and root, and is skipped without them.
IMAGE_ROOT := $(if $(and $(shell command -v buildah),$(shell command -v debootstrap),$(filter 0,$(shell id -u))),.tools/debian-root/.installed)
BENCH_LOADERS := target-jsonl target-duckdb meltanolabs-target-postgres postgres-server

# An installed uv is used if it runs; otherwise the pinned one, in its own folder.
INSTALLED_UV := $(shell uv --version >/dev/null 2>&1 && command -v uv)
UV := $(or $(INSTALLED_UV),.tools/uv/bin/uv)
UV_READY := $(if $(INSTALLED_UV),,.tools/uv/.installed)
SYNC := "$(UV)" pip sync --quiet --require-hashes
EDITABLE := "$(UV)" pip install --quiet --no-deps --no-build-isolation --editable .
COMPILE := "$(UV)" pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-header

# Python is looked for on this machine, never downloaded; certificates are the system's. An activated
# environment or another project has no influence. Python may write its compiled files: tests start it often.
export UV_PYTHON_DOWNLOADS := never
export UV_SYSTEM_CERTS ?= true
unexport VIRTUAL_ENV MELTANO_PROJECT_ROOT MELTANO_ENVIRONMENT PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

TOOLS_PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.tools/meltano/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-long test-loaders test-integrations test-large test-spark image site soak bench bench-ship bench-spark check fix docs test-matrix test-oldest test-newest audit lock clean venv meltano FORCE

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' Makefile

demo: .venv/.installed .meltano/.installed ## Run sandbox -> tap -> Meltano -> DuckDB twice, and show what arrived
	@PATH="$(TOOLS_PATH):$$PATH" .venv/bin/python demo/demo.py

test: .venv/.installed ## Run the test suite, except the tests that repeat for confidence or run other programs
	@PATH="$(TOOLS_PATH):$$PATH" .venv/bin/python -m pytest -m "not long and not meltano and not loaders and not integrations" $(PYTEST_ARGS)

test-long: .venv/.installed .meltano/.installed .tools/release/.installed ## Run the tests that repeat for confidence (long histories, all mutations, fuzzing), and those with Meltano
	@PATH="$(TOOLS_PATH):$$PATH" .venv/bin/python -m pytest -m "(long or hypothesis or meltano) and not loaders and not integrations" --hypothesis-profile=long $(PYTEST_ARGS)

test-loaders: .venv/.installed .tools/proof/.installed $(LOADERS:%=.tools/loader-%/.installed) ## Run real loaders and compare what they stored; UPDATE=1 updates docs/loaders.md and docs/fields.md
	@rm -rf .tools/loader-findings
	@LOADER_FINDINGS="$(CURDIR)/.tools/loader-findings" .venv/bin/python -m pytest -m "loaders and not long" $(PYTEST_ARGS)
	@$(if $(UPDATE),LOADER_FINDINGS="$(CURDIR)/.tools/loader-findings" .venv/bin/python -m pytest -m loaders tests/loaders/test_rates.py)
	@$(if $(UPDATE),.venv/bin/python -m tests.loaders.report .tools/loader-findings)

test-integrations: .venv/.installed .meltano/.installed $(CLIENTS:%=.tools/%/.installed) $(IMAGE_ROOT) ## Run real clients of other kinds: Airbyte's, dlt, Dagster, Meltano's loaders, query engines, Tenzir, and the image; UPDATE=1 updates docs/export.md
	@$(if $(UPDATE),.venv/bin/python -m tests.cli.engines)
	@PATH="$(TOOLS_PATH):$$PATH" .venv/bin/python -m pytest -m integrations $(PYTEST_ARGS)

test-spark: .tools/spark-source/.installed ## Run the tests of the Spark data source with Spark; they need Java 17 or newer
	@java -version 2>/dev/null || { echo "make: test-spark needs Java 17 or newer" >&2; exit 1; }
	@.tools/spark-source/bin/python -m pytest -m spark tests/spark

image: ## Build the container image with podman, buildah or docker; IMAGE_ARGS='--build-arg BASE=python:3.12-slim'
	@image/build $(IMAGE_ARGS)

test-large: .venv/.installed .tools/proof/.installed $(LOADERS:%=.tools/loader-%/.installed) ## Load and verify a day of a million events with real loaders
	@.venv/bin/python -m pytest -m "loaders and long" $(PYTEST_ARGS)

soak: .venv/.installed ## Run random histories of the whole tap for MINUTES (default 5)
	@.venv/bin/python -m tests.simulation --minutes $(MINUTES)

bench: .tools/bench/.installed .tools/bench-dlt/.installed .tools/bench-airbyte/.installed $(BENCH_LOADERS:%=.tools/loader-%/.installed) ## Measure the tap and others, REPETITIONS times (default 3), and update docs/performance.md; QUICK=1 tries it out, CHECK=1 fails after a slow-down
	@.tools/bench/bin/python -m benchmarks --repetitions $(REPETITIONS) $(if $(QUICK),--quick) $(if $(CHECK),--check)
	@$(if $(QUICK)$(CHECK),,.tools/bench/bin/python -m benchmarks.report)

bench-ship: .tools/bench/.installed .tools/loader-target-elasticsearch/.installed ## Measure `audit-events ship` and a Singer target into a receiver that acknowledges at once, REPETITIONS times, and update docs/siem.md
	@.tools/bench/bin/python -m benchmarks.shipping $(REPETITIONS)

bench-spark: .tools/spark-source/.installed ## Measure the Spark data source, and update docs/scale.md
	@.tools/spark-source/bin/python -m benchmarks.spark

check: .venv/.installed ## Lint; check formatting, types, which folder imports which, and the workflow file
	@.venv/bin/ruff check
	@.venv/bin/lint-imports --no-cache --no-logo
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/zizmor --quiet --offline .github

fix: .venv/.installed ## Fix what the linter can fix, and format
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

site: .tools/site/.installed ## Build the documents as a searchable site: build/site/index.html
	@.tools/site/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs/site . build/site
	@cp build/site/README.html build/site/index.html

docs: .venv/.installed .meltano/.installed ## Update the generated parts of the documents: tables, the demo's output
	@PATH="$(TOOLS_PATH):$$PATH" .venv/bin/python docs/generate.py

test-matrix: $(UV_READY) ## Run the tests of `make test` on every supported Python
	@missing=; for version in $(MATRIX); do \
	  UV="$(UV)" sh .ci/find-python $$version >/dev/null || missing="$$missing $$version"; \
	done; \
	if [ -n "$$missing" ]; then \
	  echo "make: Python$$missing not found. Install it, or name others: make test-matrix MATRIX='3.11'" >&2; \
	  exit 1; \
	fi
	@for version in $(MATRIX); do \
	  echo "== Python $$version"; \
	  $(MAKE) --no-print-directory .tools/py$$version/.installed || exit 1; \
	  .tools/py$$version/bin/python -m pytest $(PYTEST_ARGS) -m "not meltano and not long and not loaders and not integrations" || exit 1; \
	done

test-oldest: .tools/oldest/.installed ## Run the tests of `make test` with the oldest version of each dependency that pyproject.toml allows
	@PATH="$(CURDIR)/.tools/oldest/bin:$$PATH" .tools/oldest/bin/python -m pytest $(PYTEST_ARGS) -m "not meltano and not long and not loaders and not integrations"

# Without pins, and from scratch each time: what a user may get soon.
test-newest: .tools/python | $(UV_READY) ## Run the tests of `make test` with the newest version of each dependency, pre-releases included
	@rm -rf .tools/newest
	@"$(UV)" venv --quiet --python "$$(sed 1q .tools/python)" .tools/newest
	@"$(UV)" pip install --quiet --python .tools/newest/bin/python --prerelease allow \
	  --override requirements/newest.override --editable '.[sandbox,duckdb]' --group test
	@"$(UV)" pip list --python .tools/newest/bin/python
	@PATH="$(CURDIR)/.tools/newest/bin:$$PATH" .tools/newest/bin/python -m pytest $(PYTEST_ARGS) -m "not meltano and not long and not loaders and not integrations"

audit: .tools/audit/.installed .tools/bench/.installed ## Check for known vulnerabilities, licences that are not allowed, and secrets
	@sh .ci/audit .tools/audit/bin .tools/bench/bin/python

lock: $(UV_READY) ## Update every pin in requirements/
	$(COMPILE) --output-file requirements/uv.txt requirements/uv.in >/dev/null
	$(COMPILE) --output-file requirements/release.txt requirements/release.in >/dev/null
	$(COMPILE) --output-file requirements/audit.txt requirements/audit.in >/dev/null
	$(COMPILE) --output-file requirements/meltano.txt requirements/meltano.in >/dev/null
	$(COMPILE) --output-file requirements/target-jsonl.txt requirements/target-jsonl.in >/dev/null
	$(COMPILE) --output-file requirements/target-duckdb.txt requirements/target-duckdb.in >/dev/null
	$(COMPILE) --output-file requirements/target-duckdb-newest.txt requirements/target-duckdb-newest.in >/dev/null
	$(COMPILE) --output-file requirements/meltanolabs-target-csv.txt requirements/meltanolabs-target-csv.in >/dev/null
	$(COMPILE) --output-file requirements/meltanolabs-target-postgres.txt requirements/meltanolabs-target-postgres.in >/dev/null
	$(COMPILE) --output-file requirements/pipelinewise-target-postgres.txt \
	  --override requirements/pipelinewise-target-postgres.override requirements/pipelinewise-target-postgres.in >/dev/null
	$(COMPILE) --output-file requirements/target-elasticsearch.txt requirements/target-elasticsearch.in >/dev/null
	$(COMPILE) --output-file requirements/z3-target-bigquery.txt requirements/z3-target-bigquery.in >/dev/null
	$(COMPILE) --output-file requirements/meltano-map-transform.txt requirements/meltano-map-transform.in >/dev/null
	$(COMPILE) --output-file requirements/postgres-server.txt requirements/postgres-server.in >/dev/null
	$(COMPILE) --output-file requirements/airbyte-clients.txt requirements/airbyte-clients.in >/dev/null
	$(COMPILE) --output-file requirements/image-build.txt requirements/image-build.in >/dev/null
	$(COMPILE) --output-file requirements/image.txt --extra arrow --extra duckdb pyproject.toml >/dev/null
	$(COMPILE) --output-file requirements/bench.txt --extra sandbox --extra delta --extra iceberg --extra postgres --group bench pyproject.toml >/dev/null
	$(COMPILE) --output-file requirements/bench-airbyte.txt requirements/bench-airbyte.in >/dev/null
	$(COMPILE) --output-file requirements/bench-dlt.txt requirements/bench-dlt.in >/dev/null
	$(COMPILE) --output-file requirements/dlt.txt --extra arrow pyproject.toml requirements/dlt.in >/dev/null
	$(COMPILE) --output-file requirements/dagster.txt --extra arrow pyproject.toml requirements/dagster.in >/dev/null
	$(COMPILE) --output-file requirements/readers.txt requirements/readers.in >/dev/null
	$(COMPILE) --output-file requirements/tenzir.txt requirements/tenzir.in >/dev/null
	$(COMPILE) --output-file requirements/spark.txt requirements/spark.in >/dev/null
	$(COMPILE) --output-file requirements/spark-source.txt --extra spark --extra sandbox --group spark pyproject.toml >/dev/null
	$(COMPILE) --output-file requirements/proof.txt --extra sandbox --extra postgres --extra report pyproject.toml requirements/proof.in >/dev/null
	$(COMPILE) --output-file requirements/site.txt requirements/site.in >/dev/null
	$(COMPILE) --output-file requirements/oldest.txt --resolution lowest-direct --extra sandbox --extra duckdb --group test pyproject.toml >/dev/null
	$(COMPILE) --output-file requirements/dev.txt --extra sandbox --group dev pyproject.toml >/dev/null

clean: ## Remove everything that was installed or generated here
	rm -rf .venv .tools .meltano .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist demo/output
	find output -type f ! -name .gitignore -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: .venv/.installed ## Set up .venv, for an editor or a shell
meltano: .meltano/.installed ## Set up Meltano with the tap and the loaders of meltano.yml

# The Python of all environments: its path, its version, and this folder. The file changes only if one
# of them does; then all environments are created again. target-duckdb needs a duckdb that has no wheel
# for Python 3.14; the package itself runs there too: make test-matrix MATRIX=3.14.
WANTED := Install Python 3.11, 3.12 or 3.13, or name one: make PYTHON=python3.12 ...
.tools/python: FORCE
	@"$(PYTHON)" -c '' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' does not run. $(WANTED)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	  echo "make: '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1). $(WANTED)" >&2; exit 1; }
	@mkdir -p .tools
	@"$(PYTHON)" -c 'import os, sys; print(sys._base_executable, sys.version, os.getcwd(), sep="\n")' \
	  >.tools/python.new
	@if cmp -s .tools/python.new $@; then rm .tools/python.new; else mv .tools/python.new $@; fi

.tools/uv/.installed: requirements/uv.txt | .tools/python
	@echo "Setting up uv in .tools/uv"
	@rm -rf .tools/uv
	@"$$(sed 1q .tools/python)" -m venv .tools/uv || { \
	  echo "make: this Python has no venv. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@.tools/uv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --require-hashes --requirement requirements/uv.txt
	@touch $@

# Each environment is created again for another Python, and updated if its pins change.
.venv/pyvenv.cfg $(ENVIRONMENTS:%=.tools/%/pyvenv.cfg): %/pyvenv.cfg: .tools/python | $(UV_READY)
	@rm -rf $*
	@"$(UV)" venv --quiet --python "$$(sed 1q .tools/python)" $*

.venv/.installed: .venv/pyvenv.cfg requirements/dev.txt pyproject.toml
	@echo "Setting up the package and its tools in .venv"
	@$(SYNC) --python .venv/bin/python requirements/dev.txt
	@$(EDITABLE) --python .venv/bin/python
	@touch $@

.tools/py%/.installed: requirements/dev.txt pyproject.toml | $(UV_READY)
	@echo "Setting up the package and its tools in .tools/py$*"
	@test -e .tools/py$*/pyvenv.cfg || \
	  "$(UV)" venv --quiet --python "$$(UV="$(UV)" sh .ci/find-python $*)" .tools/py$*
	@$(SYNC) --python .tools/py$*/bin/python requirements/dev.txt
	@$(EDITABLE) --python .tools/py$*/bin/python
	@touch $@

.tools/%/.installed: .tools/%/pyvenv.cfg requirements/%.txt
	@echo "Setting up $* in .tools/$*"
	@$(SYNC) --python .tools/$*/bin/python requirements/$*.txt
	@touch $@

# These environments also have the package, as a user would install it. In the others, the tap is
# imported from this folder if it is needed.
.tools/bench/.installed .tools/oldest/.installed .tools/spark-source/.installed: .tools/%/.installed: .tools/%/pyvenv.cfg requirements/%.txt pyproject.toml
	@echo "Setting up the package in .tools/$*"
	@$(SYNC) --python .tools/$*/bin/python requirements/$*.txt
	@$(EDITABLE) --python .tools/$*/bin/python
	@touch $@

.tools/loader-%/.installed: requirements/%.txt .tools/python | $(UV_READY)
	@echo "Setting up $* in .tools/loader-$*"
	@rm -rf .tools/loader-$*
	@"$(UV)" venv --quiet --python "$$(sed 1q .tools/python)" .tools/loader-$*
	@$(SYNC) --python .tools/loader-$*/bin/python requirements/$*.txt
	@touch $@

MELTANO_INSTALL := .tools/meltano/bin/meltano --log-level=warning install --clean
# meltano.yml has ranges, as users need them; the pins are passed to Meltano's installs as constraints.
.meltano/.installed: .tools/meltano/.installed meltano.yml pyproject.toml \
		plugins/extractors/tap-audit-events--audit-events.lock \
		requirements/dev.txt requirements/target-duckdb.txt requirements/target-jsonl.txt
	@echo "Setting up the tap and the loaders in .meltano"
	@UV_CONSTRAINT=requirements/dev.txt UV_BUILD_CONSTRAINT=requirements/dev.txt $(MELTANO_INSTALL) extractor tap-audit-events
	@UV_CONSTRAINT=requirements/target-duckdb.txt $(MELTANO_INSTALL) loader target-duckdb
	@UV_CONSTRAINT=requirements/target-jsonl.txt $(MELTANO_INSTALL) loader target-jsonl
	@touch $@

# A Debian with Python, from its own packages: the base of the image in tests, which use no image registry.
.tools/debian-root/.installed:
	@echo "Setting up Debian in .tools/debian-root"
	@rm -rf $(@D) && mkdir -p $(@D)
	@debootstrap --variant=minbase --include=python3,python3-venv trixie $(@D)/root >$(@D)/log 2>&1 || { \
	  tail $(@D)/log >&2; echo "make: debootstrap failed, see above and $(@D)/log" >&2; exit 1; }
	@tar --create --file $(@D)/root.tar --directory $(@D)/root \
	  --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' .
	@rm -rf $(@D)/root
	@touch $@

FORCE:
