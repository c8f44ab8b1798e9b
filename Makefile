# `make demo` and `make test` are all a new machine needs; both prepare .venv first. The same steps run in CI (.ci/run).
.DEFAULT_GOAL := help
.PHONY: help setup demo test lab bench doctor lint format lock image image-lock clean

export LEARNGRAPH_HOME ?= $(CURDIR)/.learngraph
BIN := .venv/bin
LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## prepare .venv (does nothing when it is up to date)
	@.ci/setup

demo: setup ## run the flights workflow; print report, tier, seal and the line that verifies it
	@$(BIN)/python .ci/demo.py

test: setup ## lint and the whole test suite; skips are listed before the closing line
	@$(LINT); lint=$$?; \
	env -u LEARNGRAPH_HOME $(BIN)/python -m pytest -n 2 -ra; tests=$$?; \
	[ $$lint -eq 0 ] || echo "make test: lint failed, see above the tests" >&2; \
	exit $$((tests ? tests : lint))

lint: setup ## ruff and mypy
	@$(LINT)

format: setup ## let ruff put the code in order
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lab: setup ## JupyterLab with the demo workspace
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) \
	  --ServerApp.root_dir=$(CURDIR)/notebooks --LabApp.default_url=/lab/tree/flights_weekly.ipynb

bench: setup ## every benchmark, one after the other
	@$(BIN)/python benchmarks

doctor: setup ## every component, its state, and the remedy for what fails
	@$(BIN)/learngraph doctor --workspace notebooks

.venv/lock/bin/uv:
	@$(BIN)/python -m venv .venv/lock
	@.venv/lock/bin/python -m pip install --quiet --disable-pip-version-check uv

lock: setup .venv/lock/bin/uv ## resolve requirements.lock anew from pyproject.toml (the only step that uses uv)
	@.venv/lock/bin/uv pip compile pyproject.toml --extra dev --generate-hashes --python-version 3.11 --quiet \
	  --no-header --output-file requirements.lock

image: setup ## make the sandbox image by what is possible here; prints its id
	@$(BIN)/python sandbox-image/build.py

image-lock: setup .venv/lock/bin/uv ## make the image's lock files anew (needs Docker and gpgv)
	@PATH=$(CURDIR)/.venv/lock/bin:$$PATH $(BIN)/python sandbox-image/build.py --relock

clean: ## remove .venv and caches; runs in .learngraph stay
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
