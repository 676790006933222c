# Two verbs do everything on a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test check bench figures clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python experiments/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m "not slow and not gpu" tests
	$(BIN)/python -m pytest -n 2 -m "slow and not gpu" tests

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

bench: $(STAMP)
	$(BIN)/rollart bench

figures: $(STAMP)
	$(BIN)/python experiments/policies.py

clean:
	rm -rf $(VENV) runs build dist
