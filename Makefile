# Everything a day needs; `make` alone lists it. A fresh clone wants Python 3.11 or newer and nothing else.

PYTHON  ?= python3
VENV    ?= .venv
UV      ?= uv
# One more than the cores of a small machine: tests wait for the database and for other processes.
WORKERS ?= 3

PY   := $(VENV)/bin/python
# What writes a committed file: each module writes it, and with --check only says whether it is fresh.
GENERATORS := scripts.openapi scripts.metric_pages scripts.generate_settings scripts.client_methods
# The rooms that need no database.
FAST_TESTS := $(wildcard tests/kernel tests/domain tests/services)

# The arithmetic is many small arrays in threads of the service's own; threads inside each operation only get in the way.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
# Where it is set every process compiles the whole service again, which is a quarter of its start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-fast fuzz check check-generated golden bench fmt migrate openapi docs site screens lock clean

help: ## this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.installed-run ## the service on http://127.0.0.1:8000, with a Postgres of its own in ./data
	@exec $(PY) -m app serve

test: $(VENV)/.installed-dev ## everything that a change breaks by mistake, in minutes, on a Postgres of its own
	$(PY) -m pytest -m "not slow" -W error::RuntimeWarning -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

test-all: $(VENV)/.installed-slow ## every test: also simulated statistics, browsers, MLflow, generated input
	@$(PY) -m tests.ui.browser
	$(PY) -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

test-fast: $(VENV)/.installed-dev ## kernel, domain and services: no database
	$(PY) -m pytest -m "not slow" $(FAST_TESTS) $(PYTEST_ARGS)

fuzz: $(VENV)/.installed-slow ## generated requests, inputs and files, twenty times as many and new ones every time
	FUZZ_FACTOR=20 HOSTILE_EXAMPLES=1200 $(PY) -m pytest -n $(WORKERS) tests/api/generated tests/hostile/test_generated.py $(PYTEST_ARGS)

check: $(VENV)/.installed-dev ## what a change must pass: lint, format, types, imports, unreached code, generated files
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PY) -m scripts.unreached
	$(PY) -m scripts.requirements --check
	@$(MAKE) --no-print-directory check-generated

check-generated: $(VENV)/.installed-dev ## are the files that are written from code up to date?
	@for generator in $(GENERATORS); do echo "$(PY) -m $$generator --check"; $(PY) -m $$generator --check || exit 1; done

bench: $(VENV)/.installed-bench ## measure against the peers, in one run on this machine
	$(PY) -m benchmarks $(BENCH_ARGS)

golden: $(VENV)/.installed-dev ## record the golden answers anew, and say by path what differs
	$(PY) -m tests.golden.record
	$(PY) -m tests.golden.examples
	$(PY) -m tests.golden.mistakes

fmt: $(VENV)/.installed-dev ## format the code and fix what can be fixed
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

migrate: $(VENV)/.installed-run ## bring the database of PREVAIL_DATABASE_URL (or the embedded one) to the newest schema
	$(PY) -m app migrate

openapi: $(VENV)/.installed-dev ## write docs/openapi.json
	$(PY) -m scripts.openapi

docs: $(VENV)/.installed-dev ## write docs/metrics/, and docs/reference/settings.md and client-methods.md
	$(PY) -m scripts.metric_pages
	$(PY) -m scripts.generate_settings
	$(PY) -m scripts.client_methods

site: $(VENV)/.installed-slow ## the documentation as a site, into build/site; nothing is fetched
	$(PY) -m sphinx -W --keep-going -b html docs build/site

screens: $(VENV)/.installed-slow ## the pictures of pages in the documentation, docs/screens, from a browser
	SCREENS_FOLDER=$(CURDIR)/docs/screens $(PY) -m pytest -n 0 tests/ui/test_browser.py -k pictures_of_the_documentation

lock: $(VENV)/.installed-dev ## pin requirements/*.txt anew from pyproject.toml (needs uv)
	$(PY) -m scripts.requirements --uv $(UV)

clean: ## remove the environment and caches; the data stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info client/src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(None if sys.version_info >= (3, 11) else "Prevail needs Python 3.11 or newer, $(PYTHON) is " + v + "; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# One stamp per requirements file: installed once, and again when the file changes.
# The client and the service are installed as they lie here, for the command `prevail`.
$(VENV)/.installed-%: requirements/%.txt pyproject.toml client/pyproject.toml | $(PY)
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip
	@echo "installing requirements/$*.txt into $(VENV) (once, about a minute)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e ./client -e .
	@touch $@
