# Thin over the console command and the test runner. `make` alone prints help.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
# Processes that start cold compile every module anew when they may not keep what they compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo misfortunes superset test-superset up test test-commands test-services test-marts test-integration test-api test-rest test-workbench test-misfortunes test-slow test-long bench lint format examples lock clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

# Python packages from the lock file, with hashes. --no-deps: the lock is complete, and pip cannot match an extra to its pin.
.venv/installed: requirements.lock pyproject.toml
	@echo "Python packages: installing $$(grep -c '==' $<) into .venv, some 1 to 4 minutes"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Node packages from the lock file: the documentation page, and the EVM node for the demo and the tests.
node_modules/installed: package.json package-lock.json
	@echo "Node packages: installing into node_modules, some seconds"
	npm ci --silent
	touch $@

# The pages of the reports, as the API serves them.
build/reports/index.html: node_modules/installed $(shell find reports -name test -prune -o -type f -print)
	@echo "Reports: building their pages"
	node reports/build.mjs

install: .venv/installed node_modules/installed build/reports/index.html ## Install the service into .venv

demo: install ## Start a chain and the service, and show the main job (ONCE=1: check, then stop; LIMIT=900: for slow machines)
	$(BIN)/python -m tests.e2e.demo $(if $(ONCE),--once) $(if $(LIMIT),--limit $(LIMIT))

misfortunes: install ## Do to a chain what chains do to ledgers, and compare (FAULTS=1: with a provider that fails, too)
	$(BIN)/python -m tests.integration.misfortunes $(if $(FAULTS),--faults)

# Superset has an environment of its own: it is bound to versions of libraries that the service does not run on.
build/superset/installed: bi/superset/requirements.lock
	@echo "Superset: installing $$(grep -c '==' $<) packages into build/superset, some 1 to 4 minutes"
	rm -rf build/superset/venv
	$(PYTHON) -m venv build/superset/venv
	build/superset/venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	touch $@

superset: install build/superset/installed ## Provision Superset and start it on loopback (ARGS: a command of Superset's instead)
	$(BIN)/python bi/superset/run.py $(ARGS)

test-superset: install build/superset/installed ## Attack an own Superset, and embed its dashboards in a browser
	tests/debian-packages
	$(BIN)/pytest -o cache_dir=.pytest_cache/superset -o timeout=600 tests/superset $(ARGS)

up: install ## Run API, Dagster and the continuous schedule (`ledgermart up`)
	$(BIN)/ledgermart up

test: install ## Prove the system; `make test-slow` and `make test-misfortunes` go further
	tests/debian-packages
	$(AT_ONCE) lint

test-slow: install ## What takes long of the rest
	tests/debian-packages
	$(AT_ONCE) SHORT='-m "slow and not long and not bench"' MAY_CHOOSE_NOTHING=yes

# The parts of `make test` and lint, all at once: they wait for nodes and other processes half of their time, and with
# fewer of them one of two cores had nothing to do at the end.
AT_ONCE = $(MAKE) --no-print-directory --jobs=7 --output-sync=target test-marts test-integration test-commands \
	test-services test-rest test-api
# Every file of tests is in one part, by what it waits for; preparing dbt takes a part 13 s of processor time.
# ARGS and `make test-slow` may choose nothing of a part, which is exit code 5; otherwise it has lost its tests.
OR_NOTHING_CHOSEN = $(if $(strip $(ARGS) $(MAY_CHOOSE_NOTHING)),|| [ $$? = 5 ])
integration = $(patsubst %,tests/integration/test_%.py,$(1))
# Processes that start cold and stay: the demo, Dagster, the worker, the API.
SERVICES := tests/e2e $(call integration,concurrent_processes up worker)
# The console command, forked, and what begins with the folder that it prepared.
COMMANDS := $(call integration,common_tokens cycle_command data_folder definitions history_estimates kill lying_nodes \
	maintenance pairs_over_http price_collection published_schema upgrade warm_processes)
# dbt over rows, forked.
MARTS := $(call integration,attestations differences exact_to_json fees interleavings mainnet openings prices_transform \
	rests scale tenant_versions transform values_transform) tests/unit/dbt
# These have targets of their own.
WORKBENCH := $(call integration,analysts_page sandbox)
MISFORTUNES := $(call integration,misfortunes)
SHORT := -m "not slow and not long and not bench"

test-commands:
	$(BIN)/pytest $(SHORT) -o cache_dir=.pytest_cache/commands $(COMMANDS) $(ARGS) $(OR_NOTHING_CHOSEN)

test-services:
	$(BIN)/pytest $(SHORT) -o cache_dir=.pytest_cache/services $(SERVICES) $(ARGS) $(OR_NOTHING_CHOSEN)

test-marts:
	$(BIN)/pytest $(SHORT) -o cache_dir=.pytest_cache/marts $(MARTS) $(ARGS) $(OR_NOTHING_CHOSEN)

# Collection in the tests' own process.
test-integration:
	$(BIN)/pytest $(SHORT) -o cache_dir=.pytest_cache/integration tests/integration \
		$(addprefix --ignore=,$(SERVICES) $(COMMANDS) $(MARTS) $(WORKBENCH) $(MISFORTUNES)) $(ARGS) $(OR_NOTHING_CHOSEN)

test-api:
	$(BIN)/pytest $(SHORT) -o cache_dir=.pytest_cache/api tests/api $(ARGS) $(OR_NOTHING_CHOSEN)

test-rest:
	$(BIN)/pytest $(SHORT) -o cache_dir=.pytest_cache/rest --ignore=tests/api --ignore=tests/integration \
		--ignore=tests/superset $(addprefix --ignore=,$(SERVICES) $(MARTS)) $(ARGS) $(OR_NOTHING_CHOSEN)

test-misfortunes: install ## Everything that goes wrong on chains, behind failing providers and on a healthy node
	$(BIN)/pytest -o cache_dir=.pytest_cache/misfortunes $(MISFORTUNES) $(ARGS)

test-workbench: install ## The analysts' page word for word, and sandboxes beside cycles
	$(BIN)/pytest $(SHORT) -o cache_dir=.pytest_cache/workbench $(WORKBENCH) $(ARGS)

test-long: install ## The same with more seeds, kills, examples and rows
	tests/debian-packages
	$(AT_ONCE) test-workbench test-misfortunes SHORT='-m "not bench" -o timeout=7200'

bench: install ## Measure, and print what was measured with the machine
	$(BIN)/python -m tests.bench $(ARGS)

lint: .venv/installed build/linted-sql ## Style, types, import contracts, links between documents, SQL
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.links

# A second a file: those that changed since all were found good, or all where what they are read with changed.
SQL := $(sort $(shell find dbt_project/models dbt_project/tests -path '*/generic' -prune -o -name '*.sql' -print))
build/linted-sql: $(SQL) $(shell find dbt_project/macros -name '*.sql') dbt_project/.sqlfluff requirements.lock | .venv/installed
	$(BIN)/sqlfluff lint --processes 2 $(if $(filter-out $(SQL),$?),dbt_project/models dbt_project/tests,$?)
	mkdir -p $(@D)
	touch $@

# Sphinx has an environment of its own: the service does not run on it.
build/sphinx/installed: docs/requirements.lock
	rm -rf build/sphinx
	$(PYTHON) -m venv build/sphinx
	build/sphinx/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	touch $@

.PHONY: docs
docs: build/sphinx/installed ## Build the documents as a site in build/site; docs/index.html is its start
	build/sphinx/bin/sphinx-build --quiet --fresh-env --write-all --fail-on-warning -c docs . build/site

format: .venv/installed ## Format Python and SQL in place, and write dbt's sources and the page of problem codes
	$(BIN)/python -m pipelines.tables.sources
	$(BIN)/python -m api.problem_codes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/sqlfluff fix dbt_project/models dbt_project/tests

examples: install ## Record the examples of the OpenAPI document anew, from answers of the tests
	RECORD_EXAMPLES=1 $(BIN)/pytest tests/api/test_openapi_examples.py $(ARGS)

lock: ## Bring the lock files up to their requirements, keeping the pins that fit (ARGS=--upgrade: the newest versions)
	$(PYTHON) -m venv build/uv
	build/uv/bin/pip install --quiet --disable-pip-version-check uv
	$(COMPILE) pyproject.toml --group dev --output-file requirements.lock
	$(COMPILE) bi/superset/requirements.in --output-file bi/superset/requirements.lock
	$(COMPILE) docs/requirements.in --output-file docs/requirements.lock

COMPILE = build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command 'make lock' $(ARGS)

clean: ## Remove what make installed and built; data stays
	rm -rf .venv node_modules build
