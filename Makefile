# Two commands for newcomers: `make demo` and `make test`. Everything else is for those who work here.
# Every install goes through constraints.txt, so that pip takes the pinned (CPU) build of torch.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
STORE ?= demo-results
SITE ?= site
SITE_DOCS ?= site-docs
PYTEST_WORKERS ?= 2
# A test that hangs fails with its stack, and what fails is printed at once: a run that is cut off has named it.
SPREAD := -n $(PYTEST_WORKERS) --dist worksteal --max-worker-restart 2 \
	--instafail --timeout 900 -o faulthandler_timeout=600
export TORCHGAUGE_CHROMIUM ?= $(shell command -v chromium || command -v google-chrome || echo /usr/bin/chromium)

.PHONY: demo test test-full faults bench lint static docs lock dist clean help chromium axe slurm

help:
	@echo "make demo       measure real models on the devices present, in two stages, and build the dashboard after each"
	@echo "make test       all checks and tests (creates the environment it needs)"
	@echo "make test-full  the nightly form"
	@echo "make faults     do to it what machines do: all tests behind docs/reliability.md"
	@echo "make bench      the benchmarks whose figures stand in docs/performance.md"
	@echo "make static     ruff, mypy, the import contract, the workflows and the types of the dashboard's modules alone"
	@echo "make lock       pin, with hashes, what the jobs that write install"
	@echo "make dist       the sdist and the wheel, as a release builds them"
	@echo "make docs       regenerate docs/reference and docs/performance.md, build the documentation's site in $(SITE_DOCS)"

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "torchgauge needs Python 3.11 or later; try: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.created pyproject.toml constraints.txt packages/npusim/pyproject.toml
	@echo "installing torchgauge, torch, timm and transformers into $(VENV) (a few minutes) ..."
	$(PIP) install -c constraints.txt -e '.[torch,dashboard]' -e ./packages/npusim
	@touch $@

# Compiled, so apart from the rest: an unchanged package is not built again. It needs the torch that is installed.
ASYNCSIM := $(wildcard packages/asyncsim/pyproject.toml packages/asyncsim/setup.py packages/asyncsim/csrc/*)
$(VENV)/.asyncsim: $(VENV)/.runtime $(ASYNCSIM)
	@echo "building packages/asyncsim, a simulated device in C++ (two minutes on two cores) ..."
	$(PIP) install -c constraints.txt --no-build-isolation --no-deps -e ./packages/asyncsim
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "installing the tools of development into $(VENV) ..."
	$(PIP) install -c constraints.txt -e '.[torch,dev,docs]'
	@touch $@

demo: $(VENV)/.runtime
	@sh scripts/demo.sh $(BIN)/torchgauge "$(STORE)" "$(SITE)"

chromium:
	@sh scripts/ensure-chromium.sh

slurm:
	@sh scripts/ensure-slurm.sh

axe: $(VENV)/.created
	@$(BIN)/python tests/dashboard/axe_core.py

static: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	sh scripts/check-js.sh $(BIN)/python
	$(BIN)/torchgauge validate > /dev/null
	$(BIN)/actionlint .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(BIN)/zizmor --offline --quiet --persona pedantic .github

test: static $(VENV)/.asyncsim chromium axe slurm
	TORCHGAUGE_REQUIRE_CHROMIUM=1 TORCHGAUGE_REQUIRE_SPHINX=1 $(BIN)/python -m pytest $(SPREAD) -m "not full"

test-full: static $(VENV)/.asyncsim chromium axe slurm
	TORCHGAUGE_REQUIRE_CHROMIUM=1 TORCHGAUGE_REQUIRE_SPHINX=1 $(BIN)/python -m pytest $(SPREAD) --timeout 1200

faults: $(VENV)/.dev $(VENV)/.asyncsim
	$(BIN)/python -m pytest $(SPREAD) --timeout 1200 $$($(BIN)/python tests/harness/faults/catalogue.py)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/timing_bias.py
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/regression_replay.py
	$(BIN)/python benchmarks/suite_simulation.py

docs: $(VENV)/.dev
	$(BIN)/python docs/generate_reference.py
	$(BIN)/python docs/generate_measurements.py
	$(BIN)/python docs/sphinx/build.py "$(SITE_DOCS)"

# `make lock UPGRADE=--upgrade` takes newer releases; without it only what pyproject.toml or constraints.txt changed moves.
lock: $(VENV)/.dev
	echo hatchling | $(BIN)/uv pip compile pyproject.toml - --extra dashboard $(UPGRADE) --quiet -c constraints.txt --generate-hashes \
		--python-version 3.11 --python-platform x86_64-unknown-linux-gnu --no-annotate \
		--custom-compile-command "make lock" -o src/torchgauge/workflows/locked.txt

dist: $(VENV)/.dev
	$(BIN)/python scripts/release.py build --out dist

clean:
	rm -rf $(VENV) $(SITE) $(SITE_DOCS) demo-results build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
