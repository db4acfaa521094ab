# Every target sets up what it needs: Python 3.10 or later with venv, a C++ compiler and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the installation is made from: it is editable, so Python files are not part of it.
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(wildcard src/labelsense/_kernels/*.[ch]pp)
PIP := -m pip --disable-pip-version-check --quiet

.PHONY: help demo test test-dask test-oldest sanitize reproduce lint bench bench-learners bench-formats bench-scale clean

help:
	@echo "make demo   train on data, print a table"
	@echo "make test   run the tests"
	@echo "make test-dask  run the tests that start a Dask cluster on this machine (two minutes)"
	@echo "make test-oldest  run the tests with the oldest versions of all dependencies"
	@echo "make sanitize  run the tests of the kernels with every memory access checked (needs GCC; ten minutes)"
	@echo "make reproduce  run the paper's experiments, write reproduction/report.html (half an hour)"
	@echo "make lint   check style and types"
	@echo "make bench  measure against the alternatives (minutes)"
	@echo "make bench-learners  measure training against PECOS, omikuji and napkinXC (needs data sets; ten minutes)"
	@echo "make bench-formats  measure reading and writing of files (a gigabyte; minutes)"
	@echo "make bench-scale  train past memory and on several processes (a file of 5 GB; hours)"
	@echo "make clean  remove everything that was built"

# Which modules there are: an editable installation knows them by name.
$(VENV)/.modules: FORCE
	@mkdir -p $(VENV)
	@find src -name '*.py' | sort | cmp -s - $@ || find src -name '*.py' | sort > $@
FORCE:

$(VENV)/.installed: $(SOURCES) $(VENV)/.modules
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "labelsense needs Python 3.10 or later; $(PYTHON) is older. Try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || { echo "setting up $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "building labelsense (about a minute the first time) ..."
	@$(BIN)/python $(PIP) install --constraint constraints.txt --editable ".[dev]"
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/labelsense demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest

test-dask: $(VENV)/.installed
	$(BIN)/python -m pytest -m dask

# Constraints by the environment, so that they hold for what the build needs too; a build folder of its own.
.venv-oldest/.installed: $(SOURCES) constraints-oldest.txt
	@test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	@echo "building labelsense with the oldest versions of its dependencies ..."
	@PIP_CONSTRAINT="$(CURDIR)/constraints-oldest.txt" .venv-oldest/bin/python $(PIP) install \
	    --config-settings=build-dir=build/oldest --editable ".[dev]"
	@touch $@

test-oldest: .venv-oldest/.installed
	.venv-oldest/bin/python -m pytest

# The kernels with AddressSanitizer and UBSan, in a build folder and an environment of their own. Python itself is not built
# with them, so their libraries are loaded first; its own allocator would hide the ends of arrays, and it leaks at exit.
SANITIZED := tests/test_kernels.py tests/test_reconstruct.py tests/test_outcomes.py tests/test_group_omp.py \
    tests/test_multistage_lasso.py tests/test_compress.py tests/test_formats.py tests/test_format_errors.py \
    tests/test_text_formats.py
.venv-sanitize/.installed: $(SOURCES)
	@test -x .venv-sanitize/bin/python || $(PYTHON) -m venv .venv-sanitize
	@echo "building labelsense with sanitizers ..."
	@.venv-sanitize/bin/python $(PIP) install --constraint constraints.txt --config-settings=build-dir=build/sanitize \
	    --config-settings=cmake.define.LABELSENSE_SANITIZE=ON --editable ".[dev]"
	@touch $@

sanitize: .venv-sanitize/.installed
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    .venv-sanitize/bin/python -m pytest --capture=sys $(SANITIZED)

reproduce: $(VENV)/.installed
	$(BIN)/labelsense reproduce

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# SPAMS is a rival, not a dependency: it lives in an environment of its own.
.venv-bench/.installed: $(SOURCES)
	@test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	@echo "building labelsense for the benchmarks ..."
	@.venv-bench/bin/python $(PIP) install --constraint constraints.txt --editable .
	@.venv-bench/bin/python $(PIP) install spams-bin || echo "spams-bin could not be installed: its columns will be empty"
	@touch $@

bench: .venv-bench/.installed
	.venv-bench/bin/python benchmarks/decoding.py
	.venv-bench/bin/python benchmarks/million_labels.py

# The peers pin other versions of NumPy: they live in an environment of their own.
.venv-peers/.installed:
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@echo "installing the peers ..."
	@.venv-peers/bin/python $(PIP) install "numpy<2" scipy scikit-learn napkinxc omikuji libpecos
	@touch $@

bench-learners: .venv-bench/.installed .venv-peers/.installed
	.venv-bench/bin/python benchmarks/learners.py

bench-formats: .venv-bench/.installed
	.venv-bench/bin/python benchmarks/formats.py

bench-scale: $(VENV)/.installed
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/schedule.py

clean:
	rm -rf .venv .venv-oldest .venv-sanitize .venv-bench .venv-peers build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
