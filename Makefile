# make demo, make test: each does all the set-up it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO ?= demo

.PHONY: help demo test test-kernels test-gpu test-portable docs check install install-demo install-test chromium benchmark sbom clean

help:
	@echo "make demo       install, then train SubGNN and the best model on a dataset of the paper"
	@echo "make test       install with the test extras, then ruff, mypy and all tests"
	@echo "make test-gpu   the tests that need a GPU"
	@echo "make test-portable  the tests on emulated processors and as another user; ARGS: arguments of pytest"
	@echo "make docs       install with the test extras, then build the documentation site: build/site"
	@echo "make benchmark  time the kernels beside what one would use instead"
	@echo "make sbom       list what is installed as a CycloneDX bill of materials: build/sbom.json"
	@echo "make clean      remove the environment and what the demo wrote"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp is remade whenever what is installed may have changed.
$(VENV)/.install: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e .
	touch $@

$(VENV)/.install-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[pyg]'
	touch $@ $(VENV)/.install

$(VENV)/.install-test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[test]'
	touch $@ $(VENV)/.install $(VENV)/.install-demo

install: $(VENV)/.install

install-demo: $(VENV)/.install-demo

install-test: $(VENV)/.install-test

demo: install-demo
	$(BIN)/python examples/demo.py $(DEMO)

check: install-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The page of subgnn serve is tested in a browser; without one, those tests are skipped and say so.
chromium:
	@if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  (timeout 300 apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	   timeout 600 apt-get install -y -qq --no-install-recommends chromium) >/dev/null 2>&1 || true; fi

# The tests of kernels compile them, once and on one core, while the types are checked on another.
test: install-test chromium
	@$(MAKE) --no-print-directory --jobs 2 check test-kernels
	$(BIN)/python -m pytest -q -n auto --dist worksteal --ignore tests/kernels

test-kernels: install-test
	$(BIN)/python -m pytest -q tests/kernels

# Those that compare a GPU with a CPU; the other tests never use a GPU.
test-gpu: install-test
	SUBGNN_TEST_GPU=1 $(BIN)/python -m pytest -q tests/models/test_methods.py tests/models/subgnn/test_module.py \
	  tests/models/subgnn/test_patch_encoder.py tests/models/subgnn/test_layer.py -k "gpu or cuda or device"

# As on other processors, with other numbers of threads, and as a user who may write almost nowhere.
test-portable: install-test chromium
	$(BIN)/python tests/portable.py $(ARGS)

docs: install-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

benchmark: install
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[benchmark]'
	$(BIN)/python benchmarks/kernels.py

# The tool has an environment of its own, so that it does not list itself.
sbom: install
	$(PYTHON) -m venv build/sbom-tool
	build/sbom-tool/bin/python -m pip install --disable-pip-version-check -q cyclonedx-bom
	build/sbom-tool/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o build/sbom.json $(VENV)

clean:
	rm -rf $(VENV) $(DEMO) build
