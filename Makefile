# `make demo` and `make test` set up everything they need in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types unit dev clean

demo: $(VENV)/installed
	$(BIN)/tokpack demo

test: lint types unit

lint: $(VENV)/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-for-tests
	$(BIN)/mypy

unit: $(VENV)/installed-for-tests
	$(BIN)/pytest -n 2

dev: $(VENV)/installed
	$(BIN)/tokpack dev

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tokpack needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/installed-for-tests: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

clean:
	chmod -R u+w demo store 2>/dev/null || true
	rm -rf $(VENV) demo store dagster_home
