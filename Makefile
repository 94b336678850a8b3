# Everything runs in .venv, which is made on first use: only Python 3.11+ with venv is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Two sets of packages: what the demonstration needs, and everything for tests, checks and pages.
DEMO_STAMP := $(VENV)/.installed-demo
STAMP      := $(VENV)/.installed
INSTALL    := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off

# The version the deep methods are tested with; `make torch` is needed for them alone.
TORCH  ?= torch==2.13.0

# The oldest versions that pyproject.toml allows, in an environment of their own.
FLOORS       := .venv-floors
FLOORS_STAMP := $(FLOORS)/.installed
FLOORS_OF    := cli plot frames omics dask bench

.PHONY: demo test coverage dist kills bounds floors install torch lint docs bench bench-full clean

$(BIN)/python:
	@echo "==> Making a Python environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "viewmend needs Python 3.11 or newer, this is " + sys.version)'
	@$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	@echo "==> Installing viewmend with NumPy, SciPy, scikit-learn, Numba and Matplotlib into $(VENV), once"
	$(INSTALL) -e '.[cli,plot]'
	@touch $(DEMO_STAMP)

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "==> Installing viewmend and the tools for tests, checks and pages into $(VENV), once"
	$(INSTALL) -e '.[dev]'
	@touch $(DEMO_STAMP) $(STAMP)

install: $(STAMP)  ## the environment with everything the tests need

torch: $(STAMP)  ## PyTorch for the deep methods, whose tests are skipped without it
	$(INSTALL) '$(TORCH)'

demo: $(DEMO_STAMP)  ## fit, print and draw on the embedded data
	@echo "==> Fitting MendClassifier and three familiar tools on handwritten digits"
	@$(BIN)/viewmend demo

# One thread per worker: as many workers as cores would otherwise fight over them. Workers begin with
# whole files, so that few fixtures are made twice, and take over what is left from each other.
test: $(STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not kills" $(ARGS)

coverage: $(STAMP)  ## the same, and which lines no test runs: build/coverage/html
	mkdir -p build/coverage
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal -m "not kills" \
	    --cov --cov-report=term --cov-report=html $(ARGS)

dist: $(STAMP)  ## the wheel and the source distribution in dist/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build

kills: $(STAMP)  ## the tests that kill and interrupt processes, which mostly wait
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal -m kills

# Compiled kernels that read or write outside of an array say so here. Code with checks has a cache
# of its own, or it would be mixed with that of other runs.
bounds: $(STAMP)  ## the tests of compiled kernels with every index checked
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/numba-bounds OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
	    $(BIN)/python -m pytest -q -n auto --dist worksteal tests/backend/test_bounds.py \
	    tests/backend/test_kernels.py tests/backend/test_fourier.py tests/core/graphs \
	    tests/hostile/test_magnitudes.py $(ARGS)

$(FLOORS_STAMP): pyproject.toml scripts/floors.py
	$(PYTHON) -m venv --clear $(FLOORS)
	$(FLOORS)/bin/python scripts/floors.py $(FLOORS_OF) > $(FLOORS)/floors.txt
	$(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
	    -r $(FLOORS)/floors.txt pytest
	$(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $(FLOORS_STAMP)

floors: $(FLOORS_STAMP)  ## fit, predict, save and the command line with the oldest versions allowed
	NUMBA_CACHE_DIR=build/numba-floors OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(FLOORS)/bin/python \
	    -m pytest -q --noconftest -p no:cacheprovider -W default tests/test_smoke.py $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The gallery runs the examples, and one of them is about tensors. ARGS=-Dgallery_run=0 leaves the
# pages of the gallery as an earlier build made them.
docs: torch  ## the documentation in build/site, warnings being errors
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going \
	    --doctree-dir build/doctrees $(ARGS) docs build/site

bench: $(STAMP)  ## speed at small sizes: figures, tables and pictures in build/bench
	$(BIN)/python -m benchmarks.perf --set quick --out build/bench

bench-full: $(STAMP)  ## speed of AGF-TI at all sizes, which takes hours, and its page
	$(BIN)/python -m benchmarks.perf --set full --out build/bench-full --page docs/benchmarks/agfti_speed.md

clean:
	rm -rf $(VENV) $(FLOORS) build dist .pytest_cache .mypy_cache .ruff_cache
