# Works with GNU make 3.81 (macOS) and later.  Everything happens in .venv; nothing needs root.
# PYTHON picks the interpreter; ARGS is passed on:  make demo ARGS="--once --devices 20000"

PYTHON ?=
ARGS ?=
PAGES ?=
WORKERS ?= auto

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := .venv-peers
SDKS := .venv-sdks
SECRETS := $(addprefix secrets/,write_key gateway_key read_token admin_token)
STORE_URLS := $(addprefix secrets/,init_url ingest_url worker_url query_url archive_url prune_url watch_url copy_url)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-rest test-slow test-faults mutants dist install-test lint types bench bench-peers bench-sdks screenshots secrets clean FORCE

help:
	@echo "make setup      install Hearsay and its development tools into .venv"
	@echo "make demo       run the whole of Hearsay here, on real data"
	@echo "make test       lint, type-check and test all that needs Python alone: four minutes"
	@echo "make test-all   make test, then make test-rest: all but what is slow"
	@echo "make test-rest  what make test leaves out: browsers, Node, proxies, most end-to-end tests: a quarter of an hour"
	@echo "make test-slow  run the tests that take minutes"
	@echo "make test-faults  kill, fill, cut off and corrupt at full scale: a quarter of an hour"
	@echo "make mutants    plant bugs at random places and say which no test sees: hours"
	@echo "make dist       build wheels and sdists of the last commit into dist"
	@echo "make install-test  install them from an index into empty environments, and run them"
	@echo "make lint       check style and formatting"
	@echo "make types      check types"
	@echo "make bench      list the benchmarks; ARGS=NAME runs one"
	@echo "make bench-peers  measure the peers beside us, in .venv-peers; ARGS=--write updates the pages"
	@echo "make bench-sdks  measure what telemetry SDKs cost, in .venv-sdks; ARGS=--write updates the pages"
	@echo "make screenshots  make the pictures of the pages in docs/images; needs chromium"
	@echo "make secrets    make the keys and passwords that docker-compose.yml reads"
	@echo "make clean      remove caches and build results"

setup: $(STAMP)

# A usable .venv is kept; one whose interpreter is gone or too old is made anew.  The distribution
# was called hearsay once: left in an old .venv, it would own the command as well.
$(STAMP): pyproject.toml
	@if ! $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		python=; \
		for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
			if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
				python=$$candidate; break; \
			fi; \
		done; \
		if [ -z "$$python" ]; then \
			echo "Hearsay needs Python 3.11 or later; found: $$($(or $(PYTHON),python3) --version 2>&1)" >&2; \
			echo "Install one, or name one: make setup PYTHON=/path/to/python3.12" >&2; \
			exit 1; \
		fi; \
		"$$python" -m venv --clear $(VENV) || { \
			echo "python3 -m venv failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }; \
	fi
	@$(BIN)/python -m pip uninstall --quiet --yes --disable-pip-version-check hearsay 2>/dev/null || true
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable '.[dev]'
	@touch $@

demo: setup
	$(BIN)/hearsay demo $(ARGS)

# A file is one worker's, and some folders are (tests/conftest.py), so that their tests share what they
# set up.  WORKERS=0 runs all in one process.
# Workers, and the hundreds of processes that tests start, share what Python compiled.
# What make test leaves out is said in one place: WHOLE of tests/conftest.py.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: lint types
	$(PYTEST) -m "not whole and not slow and not faults" $(ARGS)

test-rest: setup
	$(PYTEST) -m "whole and not slow and not faults" $(ARGS)

test-all: test
	$(MAKE) test-rest

# Bugs at random places, one at a time, in a copy; a run that was stopped goes on.
mutants: setup
	$(BIN)/python -m tests.mutants $(ARGS)

test-slow: setup
	$(BIN)/python -m pytest -m slow $(ARGS)

# Every fault at its full scale; the small runs of the same are part of make test-all.
test-faults: setup
	$(BIN)/python -m pytest tests/faults -k "not small" $(ARGS)

# Of the last commit, whatever else lies here.  A wheel is built from its sdist; its dates are the commit's.
# PAGES is where the files of this commit can be read: a package index resolves no relative link of the README.
dist: setup
	@rm -rf dist && mkdir -p dist/source && git archive HEAD | tar -x -C dist/source
	$(if $(PAGES),git show HEAD:README.md | $(BIN)/python -m tests.support.release links "$(PAGES)" >dist/source/README.md)
	$(if $(PAGES),git show HEAD:collector/README.md | $(BIN)/python -m tests.support.release links "$(PAGES)/collector" >dist/source/collector/README.md)
	@for part in . collector; do SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
		$(BIN)/python -m build --no-isolation --outdir dist dist/source/$$part || exit 1; done
	@rm -rf dist/source

install-test: setup
	$(BIN)/python -m pytest tests/test_installation.py $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(PEERS)/.installed
	$(PEERS)/bin/python -m benchmarks peers $(ARGS)

# The peers' versions are pinned and old ones win there, so they get an environment of their own.
$(PEERS)/.installed: benchmarks/requirements.txt | setup
	$(BIN)/python -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# Our wheel is built anew from a clean folder: old build results would get into it.
bench-sdks: $(SDKS)/.installed
	@rm -rf build $(SDKS)/wheel
	$(SDKS)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w $(SDKS)/wheel .
	@rm -rf build
	$(SDKS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(SDKS)/wheel/*.whl
	$(SDKS)/bin/python -m benchmarks sdk_costs command $(ARGS)

$(SDKS)/.installed: benchmarks/sdk_requirements.txt | setup
	$(BIN)/python -m venv --clear $(SDKS)
	$(SDKS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

screenshots: setup
	$(BIN)/python -m tests.browser.screenshots

secrets: $(SECRETS) secrets/users_acl secrets/replication_conf

FORCE:

# A container runs as another user than you, so the files are readable and the folder is not:
# on this machine only you get past the folder, and a container sees just the files it is handed.
define keep
	@mkdir -p secrets && chmod 700 secrets
	@$(1) > $@.new
	@if cmp -s $@.new $@; then rm -f $@.new; \
		else chmod 444 $@.new && mv -f $@.new $@ && echo "made $@"; fi
endef

$(SECRETS):
	$(call keep,python3 -I -c 'import secrets; print(secrets.token_urlsafe(32))')

# The address of the store with the password of one of its users.
$(STORE_URLS): secrets/%_url:
	$(call keep,python3 -I -c 'import secrets as s; print(f"redis://hearsay-$*:{s.token_urlsafe(32)}@store:6379/0")')

# The users of the store, with digests of these passwords; needs nothing but Python 3.11.  Looked at
# every time: a release may bring other rights, and its files may be older than this one.
secrets/users_acl: $(STORE_URLS) FORCE
	$(call keep,$(or $(wildcard $(BIN)/python),python3) -m collector.storage.access secrets)

# As whom a replica logs in at the store.
secrets/replication_conf: secrets/copy_url
	$(call keep,python3 -I -c 'from urllib.parse import urlsplit; u = urlsplit(open("$<").read()); print("masteruser " + u.username); print("masterauth " + u.password)')

clean:
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
