# Every target sets up what it needs: Python 3.10 or later with venv, a C++ compiler and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the installation is made from: it is editable, so Python files are not part of it.
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(wildcard src/labelsense/_kernels/*.[ch]pp)
PIP := -m pip --disable-pip-version-check --quiet
# Tests run in several processes, so the linear algebra in each runs on one thread: threads of many processes that wait for
# each other are slower than none. Tests of one xdist_group share a fixture that is dear, and run in one process.
PYTEST := -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadgroup
test test-oldest coverage sanitize: export OPENBLAS_NUM_THREADS := 1
test test-oldest coverage sanitize: export OMP_NUM_THREADS := 1

.PHONY: help demo serve docs sdist wheel wheels sbom test coverage mutants test-browser test-dask test-oldest test-annif fuzz fuzz-service bench-service sanitize reproduce lint bench bench-learners bench-accuracy bench-curve bench-formats bench-scale clean

help:
	@echo "make demo   train on data, print a table"
	@echo "make serve  train on data, serve the models with a page to try them"
	@echo "make test   run the tests"
	@echo "make coverage  run the tests, and say which lines of Python they do not run (ten minutes)"
	@echo "make mutants  put mistakes into metrics, labels, decoders and storage, and say which no test finds (a tenth of them: 20 minutes; MUTANTS='*' for all)"
	@echo "make docs   build the site with its tutorials into build/docs (minutes); open build/docs/index.html"
	@echo "make test-dask  run the tests that start a Dask cluster on this machine (two minutes)"
	@echo "make test-browser  run the tests of the page in Chromium, which is installed if there is none"
	@echo "make test-oldest  run the tests with the oldest versions of all dependencies"
	@echo "make test-annif  use the service from Annif and annif-client (installs them; minutes)"
	@echo "make fuzz   give every reader what atheris makes of examples (installs it; six minutes; SECONDS=600 for each target)"
	@echo "make fuzz-service  send what schemathesis makes of the service's description (installs it; minutes)"
	@echo "make sanitize  run the tests of the kernels with every memory access checked (needs GCC; ten minutes)"
	@echo "make reproduce  run the paper's experiments, write reproduction/report.html (half an hour)"
	@echo "make lint   check style and types"
	@echo "make bench  measure against the alternatives (minutes); AGAINST=commit measures against that commit instead"
	@echo "make bench-learners  measure training against PECOS, omikuji and napkinXC (needs data sets; ten minutes)"
	@echo "make bench-accuracy  compare the defaults with the rivals on six data sets (needs the data; an hour)"
	@echo "make bench-curve  measure precision against the number of measurements (needs the data; minutes)"
	@echo "make bench-formats  measure reading and writing of files (a gigabyte; minutes)"
	@echo "make bench-scale  train past memory and on several processes (a file of 5 GB; hours)"
	@echo "make bench-service  measure the service under load, and Annif with omikuji on the same data (needs wrk; minutes)"
	@echo "make sdist  build the source archive into dist, and run the tests from it (minutes)"
	@echo "make wheel  build a wheel, and run the tests with it elsewhere (minutes)"
	@echo "make wheels  build wheels into dist with cibuildwheel (needs Docker on Linux)"
	@echo "make sbom   write the packages that each extra brings, with licences, into dist"
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

serve: $(VENV)/.installed
	@$(BIN)/labelsense demo --serve

test: $(VENV)/.installed
	$(BIN)/python $(PYTEST)

# Lines of Python that the tests run, those in processes of theirs too; the pages of build/coverage/html show the others.
coverage: $(VENV)/.installed
	@rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/python -m coverage run $(PYTEST)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage html --quiet --directory build/coverage/html
	$(BIN)/python -m coverage report

# Mistakes put into the source one at a time, in a copy with the kernels in it: does a test fail? pyproject.toml says where.
# The environment has mutmut, and takes the rest from the other one, except for the editable installation.
.venv-mutants/.installed: $(VENV)/.installed
	@$(PYTHON) -m venv --clear .venv-mutants
	@.venv-mutants/bin/python $(PIP) install "mutmut==3.8.0" "pytest<9"
	@echo "$(CURDIR)/$$(echo $(VENV)/lib/python3*/site-packages)" > $$(echo .venv-mutants/lib/python3*/site-packages)/tested.pth
	@touch $@

MUTANTS ?= *__mutmut_*3
mutants: export OPENBLAS_NUM_THREADS := 1
mutants: export OMP_NUM_THREADS := 1
mutants: export PYTHONPATH := $(CURDIR)/build/mutants/mutants/src
mutants: .venv-mutants/.installed
	@mkdir -p build/mutants && cp -r src tests pyproject.toml README.md build/mutants
	@cp $(VENV)/lib/python3*/site-packages/labelsense/_kernels/*.so build/mutants/src/labelsense/_kernels
	cd build/mutants && ../../.venv-mutants/bin/python -m mutmut run --max-children 2 $(foreach names,$(MUTANTS),'$(names)')
	cd build/mutants && ../../.venv-mutants/bin/python -m mutmut results

test-dask: $(VENV)/.installed
	$(BIN)/python -m pytest -m dask

# Chromium is one that the machine has, Debian's where that can be installed, or else the one that Playwright fetches.
$(VENV)/.browser: $(VENV)/.installed scripts/get_chromium.sh
	@bash scripts/get_chromium.sh $(BIN)/python
	@touch $@

test-browser: $(VENV)/.browser
	$(BIN)/python -m pytest tests/browser

# What builds the site is not needed by the tests. Warnings are errors, and so are links that lead nowhere.
$(VENV)/.docs: $(VENV)/.installed
	@echo "installing what builds the site ..."
	@$(BIN)/python $(PIP) install --constraint constraints.txt --editable ".[dev,docs]"
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs 2 --quiet --doctree-dir build/doctrees docs build/docs
	$(BIN)/python scripts/check_site.py build/docs

# Constraints by the environment, so that they hold for what the build needs too; a build folder of its own.
.venv-oldest/.installed: $(SOURCES) constraints-oldest.txt
	@test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	@echo "building labelsense with the oldest versions of its dependencies ..."
	@PIP_CONSTRAINT="$(CURDIR)/constraints-oldest.txt" .venv-oldest/bin/python $(PIP) install \
	    --config-settings=build-dir=build/oldest --editable ".[dev]"
	@touch $@

test-oldest: .venv-oldest/.installed
	.venv-oldest/bin/python $(PYTEST)

# Annif and schemathesis bring many packages along: they live in environments of their own.
.venv-annif/.installed:
	@test -x .venv-annif/bin/python || $(PYTHON) -m venv .venv-annif
	@echo "installing Annif ..."
	@.venv-annif/bin/python $(PIP) install "annif[omikuji]==1.4.3" "annif-client==0.5.0"
	@touch $@

test-annif: $(VENV)/.installed .venv-annif/.installed
	$(BIN)/python scripts/check_annif.py .venv-annif

.venv-fuzz/.installed:
	@test -x .venv-fuzz/bin/python || $(PYTHON) -m venv .venv-fuzz
	@echo "installing schemathesis ..."
	@.venv-fuzz/bin/python $(PIP) install "schemathesis==4.32.5"
	@touch $@

fuzz-service: $(VENV)/.installed .venv-fuzz/.installed
	$(BIN)/python scripts/fuzz_service.py .venv-fuzz

# atheris is for Python 3.11 to 3.13. It is put beside the environment that it is used in, which stays without it.
.venv-atheris/.installed: $(VENV)/.installed
	@echo "installing atheris ..."
	@$(BIN)/python $(PIP) install --upgrade --no-deps --target .venv-atheris "atheris==3.0.0"
	@touch $@

SECONDS ?= 15
fuzz: .venv-atheris/.installed
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=.venv-atheris $(BIN)/python -m fuzz.run --seconds $(SECONDS) $(TARGETS)

# The kernels with AddressSanitizer and UBSan, in a build folder and an environment of their own. Python itself is not built
# with them, so their libraries are loaded first; its own allocator would hide the ends of arrays, and it leaks at exit.
SANITIZED := tests/test_kernels.py tests/test_reconstruct.py tests/test_omp.py tests/test_lasso_foba_cosamp.py \
    tests/test_plain_decoder.py tests/test_outcomes.py tests/test_group_omp.py tests/test_multistage_lasso.py \
    tests/test_compress.py tests/test_formats.py tests/test_format_errors.py tests/test_text_formats.py \
    tests/test_refine.py tests/test_ranker.py tests/test_shortlist.py tests/test_trees.py tests/test_fuzz.py
.venv-sanitize/.installed: $(SOURCES)
	@test -x .venv-sanitize/bin/python || $(PYTHON) -m venv .venv-sanitize
	@echo "building labelsense with sanitizers ..."
	@.venv-sanitize/bin/python $(PIP) install --constraint constraints.txt --config-settings=build-dir=build/sanitize \
	    --config-settings=cmake.define.LABELSENSE_SANITIZE=ON --editable ".[dev]"
	@touch $@

sanitize: .venv-sanitize/.installed
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    .venv-sanitize/bin/python $(PYTEST) --capture=sys $(SANITIZED)

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

FIRST = $(shell sed -n 's/^REFERENCE = "\(.*\)".*/\1/p' benchmarks/history.py)  # beside which versions are measured
ifdef AGAINST
# Another commit, from a copy of its files and in an environment of its own, beside this one.
OLD = .venv-against/$(shell git rev-parse --short "$(AGAINST)^{commit}")
.PHONY: against
against:
	@test -x $(OLD)/bin/python || $(PYTHON) -m venv $(OLD)
	@mkdir -p $(OLD)/files && git archive "$(AGAINST)" | tar -x -C $(OLD)/files
	@echo "building labelsense as of $(AGAINST) ..."
	@test -e $(OLD)/.installed || $(OLD)/bin/python $(PIP) install --constraint constraints.txt $(OLD)/files
	@touch $(OLD)/.installed

bench: .venv-bench/.installed against
	.venv-bench/bin/python benchmarks/compare.py $(OLD)/bin/python --name "$(AGAINST)"
else
bench: .venv-bench/.installed
	.venv-bench/bin/python benchmarks/decoding.py
	.venv-bench/bin/python benchmarks/million_labels.py
	$(MAKE) bench AGAINST=$(FIRST)
endif

# The peers pin other versions of NumPy: they live in an environment of their own.
.venv-peers/.installed:
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@echo "installing the peers ..."
	@.venv-peers/bin/python $(PIP) install "numpy<2" scipy scikit-learn napkinxc omikuji libpecos
	@touch $@

bench-learners: .venv-bench/.installed .venv-peers/.installed
	.venv-bench/bin/python benchmarks/learners.py

bench-accuracy: $(VENV)/.installed .venv-peers/.installed
	$(BIN)/python benchmarks/accuracy.py --write

bench-curve: $(VENV)/.installed
	$(BIN)/python benchmarks/curve.py --write

bench-formats: .venv-bench/.installed
	.venv-bench/bin/python benchmarks/formats.py

bench-scale: $(VENV)/.installed
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/schedule.py

bench-service: $(VENV)/.installed .venv-annif/.installed
	$(BIN)/python benchmarks/service.py .venv-annif

# The source archive is built in an environment that has nothing, and tested where nothing else of the repository is.
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/labelsense/_version.py)
sdist:
	@rm -rf build/sdist && $(PYTHON) -m venv build/sdist/venv
	@build/sdist/venv/bin/python $(PIP) install build
	build/sdist/venv/bin/python -m build --sdist --outdir dist .
	@tar -xzf dist/labelsense-$(VERSION).tar.gz -C build/sdist
	$(MAKE) -C build/sdist/labelsense-$(VERSION) test

# A wheel is tested where nothing else of the repository is but the tests, and the files that they read.
wheel:
	@rm -rf build/wheel && $(PYTHON) -m venv build/wheel/venv
	@build/wheel/venv/bin/python $(PIP) install build
	build/wheel/venv/bin/python -m build --wheel --outdir build/wheel .
	@bash scripts/test_wheel.sh "$(PYTHON)" build/wheel/labelsense-$(VERSION)-*.whl

wheels:
	@test -x .venv-wheels/bin/python || $(PYTHON) -m venv .venv-wheels
	@.venv-wheels/bin/python $(PIP) install cibuildwheel
	.venv-wheels/bin/python -m cibuildwheel --output-dir dist

sbom: $(VENV)/.installed
	$(BIN)/python scripts/sbom.py dist

clean:
	rm -rf .venv .venv-* build dist docs/gallery docs/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis
