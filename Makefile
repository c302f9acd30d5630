# make run    set everything up and talk to the agent (a line on standard input is answered and printed)
# make test   set everything up and run every check and test
# make check  format, style, layers, types
# make unit   the tests that do not start the program
# make e2e    the tests that start it
# make bench  the figures of the README, on this machine
# make fuzz   LINES=100000 SEED=1: random shell lines, those that are let through held against bash
# make web    the checks of the web page's sources, where Node is there
# make docs   the documentation as a site in build/docs; links and made pages are checked
# make new    KIND=tool NAME=weather: the beginning of a plugin (KIND is tool or provider)
# make clean  remove the environment and what was built
# make help   these lines
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
EXTRAS := $(wildcard requirements/extras/*.lock)

.PHONY: run help test check web unit e2e bench fuzz docs new new-words clean

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Garra needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python lacks venv: install the package python3-venv (Debian, Ubuntu: apt install python3-venv), then run make again." >&2; exit 1; }

$(VENV)/run.stamp: requirements/run.lock requirements/local.lock pyproject.toml | $(VENV)/bin/python
	@echo "Setting up (once, about a minute) …" >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/run.lock >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/local.lock >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e . >&2
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock $(EXTRAS) $(VENV)/run.stamp
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.lock $(EXTRAS:%=-r %) >&2
	@touch $@

run: $(VENV)/run.stamp
	@$(BIN)/garra

help:
	@sed -n 's/^# make/make/p' Makefile

check: $(VENV)/dev.stamp
	@$(BIN)/ruff format --check -q src tests bench docs
	@$(BIN)/ruff check -q src tests bench docs
	@$(BIN)/lint-imports
	@$(BIN)/mypy --no-error-summary
	@$(MAKE) -s web

web/node_modules/.package-lock.json: web/package-lock.json
	@cd web && npm ci --silent
	@touch $@

web:
	@if node -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 20 || (+a === 20 && +b >= 19) ? 0 : 1)' 2>/dev/null; \
	then $(MAKE) -s web/node_modules/.package-lock.json && cd web && npm run -s check && npm run -s test -- --silent --reporter=dot; \
	else echo "The web page's own checks are left out: they need Node 20.19 or newer." >&2; fi

unit: $(VENV)/dev.stamp
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not e2e"

e2e: $(VENV)/dev.stamp
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m e2e

test: check unit e2e

bench: $(VENV)/dev.stamp
	@sh bench/run.sh

LINES ?= 100000
SEED ?= 1
fuzz: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.fuzz.against_bash --lines $(LINES) --seed $(SEED)

docs: $(VENV)/dev.stamp
	@$(BIN)/python -m pytest -q tests/docs/test_reference.py tests/docs/test_site.py
	@$(BIN)/python -m docs.make.site

new-words:
	@test -n "$(KIND)" && test -n "$(NAME)" || { echo "Say which: make new KIND=tool NAME=weather (KIND is tool or provider)" >&2; exit 2; }

new: new-words $(VENV)/dev.stamp
	@$(BIN)/garra plugins new $(KIND) $(NAME)

clean:
	rm -rf $(VENV) dist build
