# Two commands for newcomers: `make demo` and `make test`. Everything else is for those who work here.
# Every install goes through constraints.txt, so that pip takes the pinned (CPU) build of torch.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
STORE ?= demo-results
SITE ?= site
PYTEST_WORKERS ?= 2
export TORCHGAUGE_CHROMIUM ?= $(shell command -v chromium || command -v google-chrome || echo /usr/bin/chromium)

.PHONY: demo test test-full bench lint static docs clean help chromium

help:
	@echo "make demo       measure 12 real models on every device present and build the dashboard"
	@echo "make test       all checks and tests (creates the environment it needs)"
	@echo "make test-full  the nightly form"
	@echo "make bench      the benchmarks whose figures stand in docs/performance.md"
	@echo "make static     ruff, mypy and the import contract alone"
	@echo "make docs       regenerate docs/reference"

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "torchgauge needs Python 3.11 or later; try: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.created pyproject.toml constraints.txt packages/npusim/pyproject.toml
	@echo "installing torchgauge, torch, timm and transformers into $(VENV) (a few minutes) ..."
	$(PIP) install -c constraints.txt -e '.[torch]' -e ./packages/npusim
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "installing the tools of development into $(VENV) ..."
	$(PIP) install -c constraints.txt -e '.[torch,dev]'
	@touch $@

demo: $(VENV)/.runtime
	@sh scripts/demo.sh $(BIN)/torchgauge "$(STORE)" "$(SITE)"

chromium:
	@sh scripts/ensure-chromium.sh

static: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/torchgauge validate > /dev/null

test: static chromium
	TORCHGAUGE_REQUIRE_CHROMIUM=1 $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -m "not full"

test-full: static chromium
	TORCHGAUGE_REQUIRE_CHROMIUM=1 $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/timing_bias.py
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/regression_replay.py
	$(BIN)/python benchmarks/suite_simulation.py

docs: $(VENV)/.dev
	$(BIN)/python docs/generate_reference.py

clean:
	rm -rf $(VENV) $(SITE) demo-results build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
