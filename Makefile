# Thin over the console command and the test runner. `make` alone prints help.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
TESTS ?= tests
# Processes that start cold compile every module anew when they may not keep what they compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install wheel debian-packages demo misfortunes superset up test test-cheap test-ci test-all fuzz faults soak bench bench-quick lint format examples docs lock clean

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

wheel: install ## Build build/wheel/ledgermart-*.whl, which runs without the checkout
	rm -rf build/wheel
	$(BIN)/python -m hatchling build --target wheel --directory build/wheel

demo: install ## Start a chain and the service, and show the main job (FAMILY=utxo: on a Litecoin node; ONCE=1: check, then stop; LIMIT=900: for slow machines)
	$(if $(filter utxo,$(FAMILY)),tests/debian-packages litecoind)
	$(BIN)/python -m tests.e2e.demo $(if $(FAMILY),--family $(FAMILY)) $(if $(ONCE),--once) $(if $(LIMIT),--limit $(LIMIT))

misfortunes: install ## Do to a chain what chains do to ledgers, and compare (FAULTS=1: with a provider that fails, too)
	$(BIN)/python -m tests.integration.misfortunes $(if $(FAULTS),--faults)

# An environment beside the target, with the packages of the lock file.
define OWN_ENVIRONMENT
rm -rf $(@D)/venv
$(PYTHON) -m venv $(@D)/venv
$(@D)/venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
touch $@
endef

# Superset has an environment of its own: it is bound to versions of libraries that the service does not run on.
build/superset/installed: bi/superset/requirements.lock
	@echo "Superset: installing $$(grep -c '==' $<) packages into $(@D), some 1 to 4 minutes"
	$(OWN_ENVIRONMENT)

superset: install build/superset/installed ## Provision Superset and start it on loopback (ARGS: a command of Superset's instead)
	$(BIN)/python bi/superset/run.py $(ARGS)

# ClickHouse, in one Python process, has an environment of its own: the service does not run on it.
build/chdb/installed: tests/cluster/requirements.lock
	@echo "ClickHouse: installing $$(grep -c '==' $<) packages into $(@D), some 1 to 4 minutes"
	$(OWN_ENVIRONMENT)

up: install ## Run API, Dagster and the continuous schedule (`ledgermart up`)
	$(BIN)/ledgermart up

# --dist loadfile: a file's tests share its fixtures, so they stay in one process. Three processes for two cores: tests wait
# for nodes and other processes. --no-loadscope-reorder: dearest file first, as tests/costs.py sorts them.
PYTEST := $(BIN)/pytest --numprocesses=3 --dist=loadfile --no-loadscope-reorder

debian-packages:
	tests/debian-packages

test: install debian-packages ## Prove the system in some ten minutes: lint, and all tests that are not dear
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint test-cheap

test-cheap:
	$(PYTEST) -m "not ci and not release" $(TESTS) $(ARGS)

test-ci: install debian-packages ## What .ci/run adds: dear proofs, and tests that start all processes
	$(PYTEST) -m "ci and not release" $(TESTS) $(ARGS)

# Of a release, part by part. It writes what each file cost into tests/costs.toml.
test-all: install debian-packages build/superset/installed build/chdb/installed ## All tests, with more seeds, kills and examples (PART=1/4, or TESTS=tests/superset)
	$(PYTEST) -o timeout=7200 --part=$(or $(PART),1/1) --write-costs $(TESTS) $(ARGS)

fuzz: install ## Tens of thousands of requests that schemathesis makes from the OpenAPI document (ARGS="--seed 2")
	$(BIN)/python -m tests.fuzz $(ARGS)

faults: install debian-packages ## Kills, full disks, bad nodes and lost files under load, as a table (ARGS="--list", ARGS="--only SIGKILL")
	$(BIN)/python -m tests.faults $(ARGS)

soak: install ## All kinds of work for 15 minutes: no error, flat memory and open files (ARGS="--minutes 2")
	$(BIN)/python -m tests.soak $(ARGS)

bench-quick: install ## Count statements and model runs, and compare them with bench/budgets.toml
	$(BIN)/python -m tests.bench.quick $(ARGS)

bench: install debian-packages ## Measure, and print what was measured with the machine
	$(BIN)/python -m tests.bench $(ARGS)

lint: .venv/installed ## Style, types, import contracts, faults of security, links and plain English in texts, SQL
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive api bi cli control figures ledgermart warehouse
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive --skip B608 pipelines
	$(BIN)/python -m tests.links
	$(BIN)/python -m tests.prose
	$(BIN)/python -m tests.lint_sql

# Sphinx has an environment of its own: the service does not run on it.
build/sphinx/installed: docs/requirements.lock
	rm -rf build/sphinx
	$(PYTHON) -m venv build/sphinx
	build/sphinx/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	touch $@

docs: build/sphinx/installed ## Build the documents as a site in build/site; docs/index.html is its start
	build/sphinx/bin/sphinx-build --quiet --fresh-env --write-all --fail-on-warning -c docs . build/site

format: .venv/installed ## Format Python and SQL in place, and write dbt's sources, the problem codes and the list of proofs
	$(BIN)/python -m pipelines.tables.sources
	$(BIN)/python -m api.http.problem_codes
	$(BIN)/python -m tests.proofs
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/sqlfluff fix dbt_project/models dbt_project/tests

examples: install ## Record the examples of the OpenAPI document anew, from answers of the tests
	RECORD_EXAMPLES=1 $(BIN)/pytest tests/api/test_openapi_examples.py $(ARGS)

lock: ## Bring the lock files up to their requirements, keeping the pins that fit (ARGS=--upgrade: the newest versions)
	$(PYTHON) -m venv build/uv
	build/uv/bin/pip install --quiet --disable-pip-version-check uv
	$(COMPILE) pyproject.toml --extra cluster --group dev --output-file requirements.lock
	$(COMPILE) bi/superset/requirements.in --output-file bi/superset/requirements.lock
	$(COMPILE) docs/requirements.in --output-file docs/requirements.lock
	$(COMPILE) tests/cluster/requirements.in --output-file tests/cluster/requirements.lock

COMPILE = build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command 'make lock' $(ARGS)

clean: ## Remove what make installed and built; data stays
	rm -rf .venv node_modules build
