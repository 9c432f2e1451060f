# Everything runs in .venv, which each target makes for itself.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz browser check format lint types docs package bench clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Tell the whole story on built-in data
	$(BIN)/polyurn demo

test: $(VENV)/.dev ## Run the tests, doctests and documentation examples
	@echo "about 6 minutes on two idle cores, up to 10 on busy ones"
	$(BIN)/python -m pytest -n auto -m "not slow"

fuzz: $(VENV)/.dev ## Feed 20,000 bad inputs to the commands and the API (20 min on two cores)
	PYTHONPATH=tests $(BIN)/python -m fuzz

browser: $(VENV)/.dev ## Open a report and the zoo page in Chromium, which is installed if it can be
	$(BIN)/python -m pytest tests/report/test_browser.py tests/zoo/test_zoo_page.py

check: lint types test docs ## What CI runs: format, lint, types, tests, docs

format: $(VENV)/.dev ## Rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.dev ## Check format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev ## Check the types
	$(BIN)/mypy

docs: $(VENV)/.dev ## Build the documentation, warnings are errors
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs build/docs

package: $(VENV)/.dev ## Build the sdist and the wheel, and check their metadata
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

bench: $(VENV)/.dev ## Measure the speed ratios (minutes)
	$(BIN)/python benchmarks/fit_speed.py
	$(BIN)/python benchmarks/training_speed.py

clean: ## Remove everything that make made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.demo
