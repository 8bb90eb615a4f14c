# A newcomer needs two of these: `make demo` and `make test`. Each sets up what it needs in .venv first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test check lint bench torture docs clean

demo: $(STAMP)  ## build `office`, open a session, make documents in the sandbox
	$(BIN)/python examples/documents/demo.py

test: $(STAMP)  ## all tests
	$(BIN)/python -m pytest -n 2 -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/envdsl fmt --check layers.d examples

check: lint test  ## everything that has to be green before a change lands

bench: $(STAMP)  ## speed, as ratios against peers in the same run
	$(BIN)/python -m benchmarks

EVERY ?= 1
torture: $(STAMP)  ## the store hurt at every step, and many processes for minutes; most of an hour, EVERY=100 minutes
	ENVDSL_TORTURE=$(EVERY) $(BIN)/python -m pytest -q tests/torture tests/store/test_crashes.py

docs: $(STAMP)  ## the pages of commands, from the same source as --help
	$(BIN)/python -m envdsl.cli.reference docs/commands

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "envdsl needs Python 3.11 or newer: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -c 'import ensurepip' || { echo "this Python has no ensurepip; on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --editable '.[dev]'
	@# The environments of Python 3.11 bring setuptools, whose .pth file runs at each start: a twentieth of a build with nothing to do.
	$(BIN)/uv pip uninstall --quiet --python $(BIN)/python setuptools
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
