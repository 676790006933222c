# Two verbs do everything on a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
CORE := $(VENV)/.core
DEV := $(VENV)/.dev

.PHONY: setup demo test check bench figures clean

setup: $(CORE)

# The simulator and the planner alone; what tests and checks need comes on top.
$(CORE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $(CORE)

$(DEV): $(CORE)
	$(PIP) -e ".[dev]"
	touch $(DEV)

demo: $(CORE)
	$(BIN)/python experiments/demo.py

test: $(DEV)
	$(BIN)/python -m pytest -n 2 -m "not slow and not gpu" tests
	$(BIN)/python -m pytest -n 2 -m "slow and not gpu" tests

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

bench: $(CORE)
	$(BIN)/rollart bench
	$(BIN)/python experiments/scale.py --quick

figures: $(CORE)
	$(BIN)/python experiments/policies.py
	$(BIN)/python experiments/policies_why.py

clean:
	rm -rf $(VENV) runs build dist
