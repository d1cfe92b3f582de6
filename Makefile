# Every target sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SPARK := .build/spark/venv
AUDIT := .build/audit
BENCH := $(patsubst requirements/%.in,%,$(wildcard requirements/bench-*.in))
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check unit docs spark-answers spark-conformance spark spark-stop spark-ready bench format lock audit clean

help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

# $(call environment,FOLDER,FILE): make an environment of what a file of locked requirements names.
define environment
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "millpond needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
@# Debian keeps what puts pip into an environment in a package of its own, python3-venv.
$(PYTHON) -m venv $(1) >/dev/null || $(PYTHON) -m venv --without-pip --clear $(1)
@echo "Installing into $(1) what $(2) names"
@$(call pip,$(1)) install --quiet --require-hashes -r $(2)
endef
pip = pip="$(1)/bin/python -m pip"; $$pip --version >/dev/null 2>&1 \
  || pip="$(PYTHON) -m pip --python $(1)/bin/python"; $$pip

$(READY): pyproject.toml requirements/lock.txt
	$(call environment,$(VENV),requirements/lock.txt)
	@$(call pip,$(VENV)) install --quiet --no-deps --no-build-isolation -e .
	@echo "millpond is there: $(BIN)/millpond, or after: source $(BIN)/activate"
	@touch $@

$(SPARK)/.ready: requirements/spark.txt
	$(call environment,$(SPARK),requirements/spark.txt)
	@touch $@

$(AUDIT)/.ready: requirements/audit.txt
	$(call environment,$(AUDIT),requirements/audit.txt)
	@touch $@

setup: $(READY)  ## Install millpond and its development tools into .venv.

demo: $(READY)  ## Run the Wanderbricks pipeline; again, and a week of changes comes in.
	@MILLPOND_BIN=$(CURDIR)/$(BIN) sh scripts/demo.sh

test:  ## Linter, format, types and all tests.
	@$(MAKE) --no-print-directory --jobs 2 check spark-ready
	@$(MAKE) --no-print-directory unit

check: $(READY)  ## Linter, format, types, and that imports point one way.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_layers.py

# Tests start a thousand processes, each of which would compile all modules itself.
unit: export PYTHONDONTWRITEBYTECODE =
unit: $(READY) spark-ready  ## All tests.
	@sh scripts/jars.sh kafka
	$(BIN)/pytest -q -n 2 --dist worksteal

docs: $(READY)  ## Write the pages that are generated: error classes and the command line.
	$(BIN)/python scripts/error_reference.py
	$(BIN)/python scripts/command_reference.py

spark: spark-ready  ## Start a Spark Connect server with Delta Lake; MILLPOND_SPARK_PORT, _WORKERS.
	@$(PYTHON) scripts/spark/server.py start

spark-stop:  ## Stop it and its workers.
	@$(PYTHON) scripts/spark/server.py stop

spark-ready: $(SPARK)/.ready  ## Install Spark and Delta Lake into .build/spark; brings Maven and Java.
	@sh scripts/jars.sh spark

spark-conformance: $(READY) spark-ready  ## All that must be the same on Spark, every query shape included; an hour.
	MILLPOND_SPARK_CONFORMANCE=1 $(BIN)/pytest -q -k spark tests/conformance tests/shapes/test_on_spark.py

spark-answers:  ## Ask Apache Spark anew what the tests of query shapes expect; needs Java 17.
	$(PYTHON) tests/shapes/record_spark_answers.py

bench: $(READY)  ## Time millpond and its peers, in turn; SUITE, PEER, SCALE, ROUNDS, BUDGET, PAGE.
	$(BIN)/python benchmarks/replace_using.py $(foreach name,$(SUITE),--suite $(name)) \
	  $(foreach name,$(PEER),--peer $(name)) $(if $(SCALE),--scale $(SCALE)) \
	  $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(BUDGET),--budget $(BUDGET)) \
	  $(if $(PAGE),--page $(PAGE))

format: $(READY)  ## Format the code and apply the linter's safe fixes.
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lock: $(READY)  ## Write requirements/*.txt anew from the *.in beside them.
	$(BIN)/python -m pip install --quiet pip-tools
	@# A file that others take as constraints can't have extras; pip needs those of all others.
	for name in lock spark audit $(BENCH); do \
	  case $$name in bench-*) extras=--no-strip-extras;; *) extras=--strip-extras;; esac; \
	  $(BIN)/pip-compile --quiet --upgrade --generate-hashes \
	  --allow-unsafe $$extras --no-header \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --output-file requirements/$$name.txt requirements/$$name.in || exit 1; done

audit: $(AUDIT)/.ready  ## Look for known holes in the locked packages; needs the network.
	@$(PYTHON) scripts/audit.py $(AUDIT)/bin/pip-audit requirements/lock.txt requirements/spark.txt

clean:  ## Remove everything that the other targets made.
	@$(PYTHON) scripts/spark/server.py stop
	rm -rf $(VENV) .build .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -rf examples/wanderbricks/pipeline-storage examples/flights/pipeline-storage
