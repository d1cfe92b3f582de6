# Every target sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup test check unit format clean

help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(READY): pyproject.toml requirements/lock.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "millpond needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY)  ## Install millpond and its development tools into .venv.

test: check unit  ## Linter, format, types and all tests.

check: $(READY)  ## Linter, format, types and house rules.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_layers.py

unit: $(READY)  ## All tests.
	$(BIN)/pytest -q -n 2

format: $(READY)  ## Format the code and apply the linter's safe fixes.
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:  ## Remove everything that the other targets made.
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis
