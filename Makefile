# What a person does with this repo. `make` alone lists it. ARGS goes to the program that is run:
#   make run ARGS="--set workers.max_count=16"      make test ARGS="tests/unit -k retry"

ARGS ?=
SEEDS ?= 1:200
LOCK ?=
PEERS_FOLDER ?=
# The newest Python here that the locked requirements are known to fit; PYTHON=... overrules.
PYTHON ?= $(shell for each in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$each && break; done)

# Twice as many as there are cores: many tests wait for daemons.
TESTERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) \* 2)

# What `make prove` simulates: first seed, how many.
PROVE_SEEDS ?= 1:1000

BIN := .venv/bin
FOLDERS := config catalog store workers manager web console
# What takes a task_status: flake8-async then finds a start_soon where a start was meant.
STARTABLE := run,_obey_signals
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# With the node of its wheel, and without a look for newer versions of itself.
PYRIGHT := PYRIGHT_PYTHON_GLOBAL_NODE=0 PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

.DEFAULT_GOAL := help
.PHONY: help run test check bench bench-peers simulate histories prove mutants fuzz screenshots nightly proof release committed deb reference dashboards fmt lock clean
.PHONY: check-format check-lint check-async check-mypy check-pyright check-config
.DELETE_ON_ERROR:

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /  make \1	/p' Makefile | expand -t 20

run: .venv/run.stamp  ## the daemon, on the embedded engine unless told otherwise
	@exec $(BIN)/musterd run $(ARGS)

test: .venv/dev.stamp .fuzz-venv/stamp  ## all tests but the minutes of real faults
	@$(BIN)/pytest -n $(TESTERS) --maxprocesses 8 --dist worksteal $(ARGS)

check: check-format check-lint check-async check-mypy check-pyright check-config  ## format, lint, types, shipped configuration

check-format: .venv/dev.stamp
	@$(BIN)/ruff format --check --quiet .

check-lint: .venv/dev.stamp
	@$(BIN)/ruff check --quiet .

check-async: .venv/dev.stamp
	@grep --recursive --include='*.py' --extended-regexp --files-with-matches --null \
		'\basync (def|with|for)\b' $(FOLDERS) musterd deploy tests \
		| xargs -0 -n 20 -P 2 $(BIN)/flake8-async --startable-in-context-manager=$(STARTABLE)

check-mypy: .venv/dev.stamp
	@$(BIN)/mypy --no-error-summary

check-pyright: .venv/dev.stamp
	@$(PYRIGHT)

check-config: .venv/dev.stamp
	@$(BIN)/musterd config check

bench: .venv/dev.stamp  ## what it costs and how fast it is, beside the bare database
	@$(BIN)/python -m tests.bench $(ARGS)

screenshots: .venv/dev.stamp  ## every view of the page, light, dark and narrow, to be looked at: ARGS="FOLDER"
	@$(BIN)/python -m tests.screenshots $(ARGS)

bench-peers: .venv/dev.stamp  ## beside other job queues: PEERS_FOLDER=/path/to/their/benchmark
	@$(BIN)/python -m tests.bench.peers "$(PEERS_FOLDER)" $(ARGS)

simulate: .venv/dev.stamp  ## whole clusters with faults, from seeds: SEEDS=1:1000, or SEED=7 once more
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) $(ARGS)

histories: .venv/dev.stamp  ## short histories of PostgreSQL with faults, judged by the checker: ARGS="--count 2000"
	@$(BIN)/python -m tests.histories $(ARGS)

prove: .venv/dev.stamp  ## what every build proves: 1,000 simulated clusters; daemons and servers under real faults
	@$(BIN)/python -m tests.simulation --seeds $(PROVE_SEEDS)
	@MUSTERD_TEST_PROVE=1 $(BIN)/pytest tests/faults $(ARGS)

mutants: .venv/dev.stamp  ## whether the simulation, or a test, notices each of many decisions undone; ARGS="NAME": one
	@$(BIN)/python -m tests.mutants $(ARGS)

fuzz: .venv/dev.stamp .fuzz-venv/stamp  ## some 450,000 inputs for whatever takes any, an hour; ARGS="cron --inputs 1000000": one target
	@$(BIN)/python -m tests.fuzz $(ARGS)

nightly: .venv/dev.stamp  ## what takes too long for every day: systemd booted for real, images built (root, Debian)
	@MUSTERD_TEST_NIGHTLY=1 $(BIN)/pytest --timeout 1800 \
		-o faulthandler_timeout=600 tests/nightly $(ARGS)

proof: .venv/dev.stamp  ## before a release: ten times the faults, 100,000 simulated clusters, an hour under load
	@$(BIN)/python -m tests.proof $(ARGS)

release: committed .venv/dev.stamp  ## wheel, sdist, Debian package and bill of materials in dist/: the same bytes from the same commit
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m hatchling build
	@if command -v dpkg-deb >/dev/null; then $(DEB); \
	else echo "musterd: no dpkg-deb here, so no Debian package" >&2; fi
	@$(BIN)/python -m deploy.sbom >dist/musterd.cdx.json
	@cd dist && sha256sum * >SHA256SUMS

# What a release has is what its commit has: whoever builds it again gets the same bytes.
committed:
	@changed=$$(git status --porcelain) || { echo "musterd: a release is built in a git checkout" >&2; exit 1; }; \
	if [ -n "$$changed" ]; then \
		echo "musterd: a release has what its commit has, and this tree differs from it:" >&2; \
		echo "$$changed" | sed 's/^/  /' >&2; \
		echo "  commit that, or build in a fresh clone; \`make deb\` packages the tree as it is" >&2; \
		exit 1; \
	fi

deb: .venv/dev.stamp  ## the Debian package alone, in dist/ (Debian, its python3)
	@rm -rf dist/*.whl dist/*.deb
	@SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m hatchling build -t wheel
	@$(DEB)

# The time of all files in what is built.
EPOCH = $$(git log -1 --format=%ct)
DEB = SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m deploy.deb dist/*.whl dist

reference: .venv/dev.stamp  ## default.toml's comments, docs' settings and job options, the manual pages anew
	@$(BIN)/python -m tests.support.settings_table
	@$(BIN)/python -m tests.support.option_tables
	@$(BIN)/python -m tests.support.man_pages

dashboards: .venv/dev.stamp  ## deploy/grafana/dashboards anew from deploy/grafana/source
	@$(BIN)/python -m deploy.grafana.source

fmt: .venv/dev.stamp  ## formats all code and mends what can be mended
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

lock: .lock-venv/stamp  ## requirements/*.txt anew from pyproject.toml (LOCK=--upgrade: newest of all)
	@$(UV_COMPILE) --group build -o requirements/run.txt
	@$(UV_COMPILE) --group dev -c requirements/run.txt -o requirements/dev.txt
	@$(subst pyproject.toml,,$(UV_COMPILE)) --group fuzz -c requirements/dev.txt -o requirements/fuzz.txt

clean:  ## removes what make and the tools have made
	@rm -rf .venv .lock-venv .fuzz-venv build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find $(FOLDERS) musterd deploy tests -name __pycache__ -prune -exec rm -rf {} +

# One lock for every Python from 3.11 on, Linux and macOS: markers where they differ.
UV_COMPILE = .lock-venv/bin/uv pip compile pyproject.toml --no-config --quiet --universal \
	--python-version 3.11 --generate-hashes --no-header --no-emit-index-url $(LOCK)

.lock-venv/stamp:
	@$(MAKE_VENV) .lock-venv
	@.lock-venv/bin/python -m pip --disable-pip-version-check -qq install uv
	@touch $@

# Nothing is fetched but what the lock names by hash; the package itself is linked, not copied.
.venv/run.stamp: requirements/run.txt pyproject.toml | $(BIN)/python
	@echo "musterd: installing what it needs into .venv" >&2
	@$(PIP) install --require-hashes -r requirements/run.txt
	@$(PIP) install --no-index --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev.stamp: requirements/dev.txt .venv/run.stamp
	@echo "musterd: installing the tools of test and check into .venv" >&2
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

.fuzz-venv/stamp: requirements/fuzz.txt
	@echo "musterd: installing the tools of the fuzzing into .fuzz-venv" >&2
	@$(MAKE_VENV) .fuzz-venv
	@.fuzz-venv/bin/python -m pip --disable-pip-version-check -qq install --require-hashes -r requirements/fuzz.txt
	@touch $@

$(BIN)/python:
	@$(MAKE_VENV) .venv

define MAKE_VENV
if [ -z "$(PYTHON)" ]; then \
	echo "musterd needs Python 3.11 or newer and found none on PATH; \
	install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
elif ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	echo "musterd needs Python 3.11 or newer, PYTHON=$(PYTHON) is not" >&2; exit 1; \
elif ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	echo "$(PYTHON) cannot make a virtual environment: its ensurepip or venv is missing \
	(Debian: apt-get install python3-venv)" >&2; exit 1; \
fi; $(PYTHON) -m venv --clear
endef
