# What one types here: every target sets up and builds what it needs first, and is quick to start the second time.
# Variables: JOBS=2 (compilers at a time), PLATFORMS="x86_64 aarch64" (of the Java package's libraries), TEST_ARGS, FUZZ_ARGS,
# BENCH_ARGS and SOAK_MINUTES (passed on to what runs), SOAK_PRESET=asan, TURN=tsan.
SHELL := /bin/bash
PYTHON := $(CURDIR)/.venv/bin/python
JOBS ?= $(shell nproc)
MACHINE := $(shell uname -m)
SOAK_MINUTES ?= 60
CMAKE_PYTHON := -DPython_EXECUTABLE=$(PYTHON) -DPython3_EXECUTABLE=$(PYTHON)

.PHONY: help setup build install demo java aar test test-all test-arm64 turn fuzz fuzz-build lint format notebooks soak wheel wheel-arm64 bench clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## Debian packages, and .venv with the pinned Python packages
	@scripts/setup.sh

# CMake itself follows CMakeLists.txt; presets and the venv (which onnx.proto and pybind11 come from) it does not.
.venv/.requirements: | setup
build/%/build.ninja: CMakePresets.json .venv/.requirements | setup
	cmake --preset $* $(CMAKE_PYTHON)
	@touch $@

build: build/release/build.ninja ## libraries, C++ tests and the Python extension, in build/release and python/pinnace
	@cmake --build build/release --parallel $(JOBS)

# All that an application needs, without the C++ tests: a third fewer files to compile before a first `make demo` shows
# anything.
install: build/release/build.ninja ## libraries, headers, pinnace-run and pinnace-report, in build/install
	@cmake --build build/release --parallel $(JOBS) \
	  --target pinnace_runtime_static pinnace_runtime pinnace neuralnetworks pinnace-run \
	    pinnace-report _core
	@cmake --install build/release --prefix build/install >build/install.log || { cat build/install.log; exit 1; }

demo: install ## the example, from a model to its answers
	@$(PYTHON) examples/demo.py

# Both Linux platforms where there is a compiler for the other one.
java: PLATFORMS ?= $(MACHINE) $(and $(filter x86_64,$(MACHINE)),$(shell command -v aarch64-linux-gnu-g++),aarch64)
java: build/release/build.ninja ## the Java packages: build/java/pinnace.jar, with native libraries inside, and pinnace-pytorch.jar
	@JOBS=$(JOBS) PLATFORMS="$(PLATFORMS)" scripts/java.sh

aar: java ## the Android packages in build/aar, with the NDK that ANDROID_NDK names
	@JOBS=$(JOBS) $(PYTHON) scripts/aar.py

test: build ## C++ tests, Python tests and the rules of the tree, with a seeded slice of the large suites
	@$(PYTHON) scripts/run_tests.py $(TEST_ARGS)

test-all: build ## everything, all sanitizers too; goes on where it was broken off; totals go to docs/results.md
	@$(PYTHON) scripts/run_tests.py --all $(TEST_ARGS)

turn: setup ## one of the checks of which .ci/run takes one a commit, TURN=asan, tsan, ...; without TURN the commit's own
	@$(PYTHON) scripts/turns.py run $(TURN)

test-arm64: ## cross-built for ARM64, in emulation: C++ tests, instruction counts, the library's size
	@scripts/arm64.sh

# Seeds are made with the Python extension of the release build.
fuzz-build: build/fuzz/build.ninja
	@cmake --build build/fuzz --parallel $(JOBS) --target fuzz_targets

fuzz: fuzz-build build ## coverage-guided fuzzing of all readers, 15 seconds each; FUZZ_ARGS go to scripts/fuzz.py
	@$(PYTHON) scripts/fuzz.py $(or $(FUZZ_ARGS),--seconds 15)

lint: build ## format, clang-tidy on what changed, ruff, mypy
	@scripts/lint.sh

format: setup ## lays all code out as lint wants it
	@scripts/lint.sh --fix

notebooks: install ## runs every notebook
	@$(PYTHON) scripts/run_notebooks.py

ifndef SOAK_PRESET
soak: build fuzz-build ## tests and fuzz targets again and again, for SOAK_MINUTES; SOAK_PRESET=asan: NNAPI's fuzz tests alone
	@$(PYTHON) scripts/soak.py --minutes $(SOAK_MINUTES)
else
soak: build/$(SOAK_PRESET)/build.ninja
	@cmake --build build/$(SOAK_PRESET) --parallel $(JOBS) --target pinnace_tests
	@$(PYTHON) scripts/soak.py --minutes $(SOAK_MINUTES) --preset $(SOAK_PRESET)
endif

wheel: build/release/build.ninja ## a wheel in dist/ that brings its libraries along, tried in an empty environment
	@cmake --build build/release --parallel $(JOBS) --target _core
	@scripts/wheel.sh build/release

wheel-arm64: setup ## the same for ARM64, cross-built and tried in emulation
	@scripts/arm64_wheel.sh

bench: install ## our times beside those of other engines, and our operators; BENCH_ARGS go to bench/report.py
	@cmake --build build/release --parallel $(JOBS) --target pinnace-peak
	@bench/setup.sh
	@$(PYTHON) bench/report.py $(BENCH_ARGS)

clean: ## what builds made; .venv stays
	rm -rf build dist python/pinnace/_core.*.so
