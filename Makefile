# The floor of the project: what a person and CI run. Needs Python 3.11 or later with venv, git and make; the tests of the ledger in
# PostgreSQL start a server of their own, from Debian's `postgresql`.
#
#   make setup      environments from the pins          make demo       the worked example, behind the gate
#   make test       all but the slow tests              make test-full  all of them, with more examples
#   make check      lint, types, imports, docs          make bench      speed, as ratios of alternating arms
#   make vectors    the conformance vectors are current make docs       the documentation, into site/
#   make wheel      one wheel, into dist/               make lock       renew the pins
#   make clean      everything that these made

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
BENCHES ?= $(filter-out bench/arms.py bench/agreement.py,$(wildcard bench/*.py))

PY := .venv/bin/python
PYTEST := $(PY) -m pytest
# A stamp tells that an environment holds exactly what its pins say.
DEV := .venv/.pinned
PROJECT := .venv/.installed
GIT_SERVER := .venvs/git/.pinned
FETCH_SERVER := .venvs/fetch/.pinned
# Warnings about a machine's own index settings are not ours to show; errors are.
# Byte code is made when it is first needed: that is a quarter of the time.
PIP_INSTALL := -m pip install -qq --no-compile --disable-pip-version-check --no-input
CODE := $(wildcard src tests bench docs examples vectors) .ci

.PHONY: setup demo test test-full check bench docs generate lock wheel vectors clean python
.DELETE_ON_ERROR:

setup: $(PROJECT) $(GIT_SERVER) $(FETCH_SERVER)

# Asked for only where an environment has to be made.
define NEED_PYTHON
import sys
version = sys.version_info
if version < (3, 11):
    sys.exit(f"make: {sys.executable} is Python {version[0]}.{version[1]}; 3.11 or later is needed (make PYTHON=python3.12 ...)")
try:
    import ensurepip, venv
except ImportError as error:
    sys.exit(f"make: {sys.executable} lacks {error.name}; install its venv package (on Debian: python3-venv)")
endef
export NEED_PYTHON

python:
	@command -v $(PYTHON) >/dev/null || { echo "make: no $(PYTHON); Python 3.11 or later is needed (make PYTHON=...)" >&2; exit 1; }
	@$(PYTHON) -c "$$NEED_PYTHON"

.venv/bin/python .venvs/git/bin/python .venvs/fetch/bin/python: | python
	$(PYTHON) -m venv $(patsubst %/bin/python,%,$@)

$(DEV): requirements/dev.txt | .venv/bin/python
	$(PY) $(PIP_INSTALL) --require-hashes -r $<
	@touch $@

$(PROJECT): $(DEV) pyproject.toml
	$(PY) $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(GIT_SERVER): requirements/server-git.txt | .venvs/git/bin/python
	.venvs/git/bin/python $(PIP_INSTALL) --require-hashes -r $<
	@touch $@

$(FETCH_SERVER): requirements/server-fetch.txt | .venvs/fetch/bin/python
	.venvs/fetch/bin/python $(PIP_INSTALL) --require-hashes -r $<
	@touch $@

demo: $(PROJECT) $(GIT_SERVER)
	$(PY) examples/demo.py $(ARGS)

test: setup
	$(PYTEST) -n $(WORKERS) --dist loadfile -m "not slow" $(ARGS)

test-full: setup
	HYPOTHESIS_PROFILE=full $(PYTEST) -n $(WORKERS) --dist loadfile $(ARGS)

check: $(PROJECT)
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo
	$(PY) docs/generate.py --check
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

docs: $(PROJECT) generate
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

generate: $(PROJECT)
	$(PY) docs/generate.py

bench: setup
	@set -e; for bench in $(BENCHES); do echo "== $$bench"; $(PY) $$bench $(ARGS); done

# vectors/generate_NAME.py writes vectors/NAME.json to its standard output.
vectors: $(PROJECT)
	@set -e; for generator in $(wildcard vectors/generate_*.py); do \
	  name=$${generator#vectors/generate_}; file=vectors/$${name%.py}.json; echo "$$file"; \
	  $(PY) $$generator > $$file.new || { rm -f $$file.new; exit 1; }; mv $$file.new $$file; \
	done
	git diff --exit-code -- vectors
	@new=$$(git ls-files --others --exclude-standard -- vectors); test -z "$$new" || { echo "not in git: $$new" >&2; exit 1; }

wheel: $(PROJECT)
	$(PY) -m build --wheel --no-isolation --outdir dist

# No address of an index goes into a pin: which one is asked is the machine's own setting.
COMPILE := $(PY) -m uv pip compile -q --upgrade --generate-hashes --universal --fork-strategy fewest --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate
lock: $(PROJECT)
	$(COMPILE) pyproject.toml -o requirements/run.txt
	$(COMPILE) pyproject.toml requirements/dev.in -c requirements/run.txt -o requirements/dev.txt
	$(COMPILE) requirements/server-git.in -o requirements/server-git.txt
	$(COMPILE) requirements/server-fetch.in -o requirements/server-fetch.txt

clean:
	rm -rf .venv .venvs dist build site .demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
