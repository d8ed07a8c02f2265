# Fluxloom. `make demo` runs the first simulation, `make test` the tests; `make help` lists the rest.

SHELL := /bin/sh
VENV  ?= .venv
BIN   := $(VENV)/bin
# LOCK=yes: install the releases that requirements/ lists, checked by their hashes, and no others.
LOCK  ?= no
STAMP := $(VENV)/.fluxloom-env$(if $(filter yes,$(LOCK)),-locked)
JOBS  ?= 2
ARGS  ?=
# POCL=no: do not let the tests install PoCL, the OpenCL driver of Debian for processors.
POCL  ?= yes

# The interpreter that builds the environment: the first one that is new enough.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

VERSION := $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
LOCKED  := requirements/python$(VERSION).lock
# Programs that look after the dependencies, in an environment of their own.
TOOLS   := build/tools$(VERSION)

# The C compiler of the cpu device; without one on the machine, one is installed into the environment.
EXTRAS   := app,viz,dev
COMPILER := $(shell for c in "$$CC" cc gcc clang; do \
	test -n "$$c" && command -v $$c >/dev/null 2>&1 && { echo $$c; break; }; done)
ifeq ($(strip $(COMPILER)),)
EXTRAS := $(EXTRAS),compiler
endif

# An environment that was copied or renamed with its checkout runs the code of the place that it was built for.
MOVED := $(shell place=$$(sed -n 's/^command = .* -m venv \(--[a-z-]* \)*//p' "$(VENV)/pyvenv.cfg" 2>/dev/null); \
	test -z "$$place" || test "$$place" -ef "$(VENV)" || echo "$$place")

.DEFAULT_GOAL := help
.PHONY: help env demo test test-long yardstick lint types docs bench lock audit sbom clean distclean \
	sanitize-address sanitize-undefined sanitize-thread sanitize-opencl

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

ifneq ($(strip $(MOVED)),)
.PHONY: $(STAMP)
endif

env: $(STAMP) ## build the Python environment in .venv (done by every target that needs it)

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { \
	  echo "Fluxloom needs Python 3.11 or newer and found none." >&2; \
	  echo "Install one (Debian, Ubuntu: sudo apt install python3 python3-venv)," >&2; \
	  echo "or name yours: make env PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "$(PYTHON) is missing or older than Python 3.11, which Fluxloom needs." >&2; exit 1; }
	@test -z "$(MOVED)" || echo "$(VENV) was built as $(MOVED): building it anew"
	@{ test -z "$(MOVED)" && $(BIN)/python -m pip --version >/dev/null 2>&1; } || { \
	  "$(PYTHON)" -c 'import venv, ensurepip' >/dev/null 2>&1 || { \
	    version=$$("$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    echo "$(PYTHON) cannot create virtual environments: its venv module is missing." >&2; \
	    echo "Debian, Ubuntu: sudo apt install python3-venv   (or python$$version-venv)" >&2; exit 1; }; \
	  echo "building $(VENV) with $$("$(PYTHON)" --version)"; \
	  "$(PYTHON)" -m venv --clear $(VENV); }
ifeq ($(LOCK),yes)
	@test -f $(LOCKED) || { echo "there is no $(LOCKED): make lock PYTHON=$(PYTHON) makes it" >&2; exit 1; }
	@test -n "$(COMPILER)" || { echo "LOCK=yes needs a C compiler on the machine: none is locked" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCKED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
else
	@test -n "$(COMPILER)" || echo "no C compiler found: installing one into $(VENV)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[mesh]" || \
	  echo "warning: the optional mesh packages did not install; meshes of other programs cannot be read" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[opencl]" || \
	  echo "warning: the optional pyopencl did not install; there is no opencl device" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[mpi]" || \
	  echo "warning: the optional mpi4py and mpich did not install; there is one rank only" >&2
endif
	@touch $@

demo: env ## run the first simulation; its picture and numbers go to build/demo
	$(BIN)/python -m fluxloom run examples/airfoil_steady.toml --output build/demo --overwrite

test: env ## run the tests (ARGS="-k name" passes options on)
	@POCL="$(POCL)" sh tests/pocl.sh $(BIN)/python
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

test-long: env ## run every test, the long ones too
	@POCL="$(POCL)" sh tests/pocl.sh $(BIN)/python
	$(BIN)/python -m pytest -n $(JOBS) -m "long or not long" $(ARGS)

yardstick: env ## run every case short and compare with its record (ARGS="--update", "--help")
	$(BIN)/python -m tests.yardstick $(ARGS)

sanitize-address: env ## run tests with native code that finds reads and writes past the end of arrays (ARGS="--full")
	$(BIN)/python -m fluxloom_lab.attack.sanitizers address $(ARGS)

sanitize-undefined: env ## run them with native code that finds undefined behaviour
	$(BIN)/python -m fluxloom_lab.attack.sanitizers undefined $(ARGS)

sanitize-thread: env ## run them with native code that finds data races (clang and libomp)
	$(BIN)/python -m fluxloom_lab.attack.sanitizers thread $(ARGS)

sanitize-opencl: env ## run tests of the OpenCL device on a simulator that finds wrong reads and writes (oclgrind)
	$(BIN)/python -m fluxloom_lab.attack.sanitizers opencl $(ARGS)

lint: env ## check the code with ruff
	$(BIN)/python -m ruff check .

types: env ## check the types with pyright
	$(BIN)/python -m pyright

docs: env ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: env ## measure the airfoil case on the CPU; the record goes to build/bench
	@mkdir -p build/bench
	$(BIN)/python -m fluxloom bench airfoil --device cpu --json build/bench/airfoil-cpu.json $(ARGS)

$(TOOLS)/.stamp: requirements/tools.txt
	@"$(PYTHON)" -m venv --clear $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/tools.txt
	@touch $@

lock: $(TOOLS)/.stamp ## write the newest releases of the dependencies and their hashes to requirements/
	CUSTOM_COMPILE_COMMAND="make lock" $(TOOLS)/bin/pip-compile --quiet --upgrade --generate-hashes --strip-extras \
	  --no-annotate --no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	  --unsafe-package fluxloom --build-deps-for editable --extra app,viz,dev,mesh,opencl,mpi \
	  --output-file $(LOCKED) pyproject.toml

audit: $(TOOLS)/.stamp ## look for known vulnerabilities of the locked dependencies
	@rm -f build/audit.json
	@$(TOOLS)/bin/pip-audit --requirement $(LOCKED) --require-hashes --disable-pip --progress-spinner off \
	  --format json --output build/audit.json 2>build/audit.log; status=$$?; \
	if test -s build/audit.json; then cat build/audit.log; exit $$status; fi; \
	grep -qiE 'connect|timed out|resolve|unreachable|proxy|certificate' build/audit.log || { \
	  cat build/audit.log >&2; exit $$status; }; \
	echo "audit skipped, its data cannot be reached: $$(grep -v '^ ' build/audit.log | tail -n 1)"

sbom: env $(TOOLS)/.stamp ## list the installed packages as CycloneDX JSON in build/sbom.json
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON \
	  --output-file build/sbom.json $(BIN)/python

clean: ## remove what builds and runs left behind, but not the environment
	rm -rf build dist site .pytest_cache .ruff_cache .hypothesis
	find fluxloom fluxloom_lab tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the environment too
	rm -rf $(VENV)
