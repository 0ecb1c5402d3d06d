# Commands for people who change readcache. Each one works in a fresh clone: it first makes .venv if that is missing.
PYTHON ?= python3
PY = .venv/bin/python
MADE = .venv/bin/ruff

.PHONY: help setup test test-core lint docs hosts bench ci

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' Makefile

setup: $(MADE) ## install readcache and its tools into .venv

$(MADE):
	$(PYTHON) -m venv .venv
	.venv/bin/pip install -q -e '.[dev]'

test: $(MADE) ## the quick tests of everything, some minutes
	$(PY) -m pytest -q

test-core: $(MADE) ## the tests of the pure core, and of layers and words
	$(PY) -m pytest -q tests/core tests/test_layers.py tests/test_glossary.py

lint: $(MADE) ## style, types and English
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pytest -q -n 0 tests/docs/test_prose.py

docs: $(MADE) ## fill the generated blocks of the documents, and test every example
	$(PY) -m tests.docs.generate --write
	$(PY) -m pytest -q tests/docs

hosts: $(MADE) ## the real hosts that install quickly, with a scripted model
	$(PY) tests/real_hosts/run.py

bench: $(MADE) ## the speed of a call, of imports and of reads, in short
	$(PY) tests/benchmarks/speed.py --short
	$(PY) tests/benchmarks/imports.py --short
	$(PY) tests/benchmarks/reading.py --short

ci: ## everything that must hold before a change lands
	.ci/run
