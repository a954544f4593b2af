# Sets up, runs, tests and checks Countersign. Needs git, make and Python 3.11, 3.12 or 3.13, nothing else.
#   make demo         the main job on examples/, with a person asked at the terminal (YES=1 asks nothing)
#   make live         one report with a real model, by OPENAI_API_KEY and OPENAI_BASE_URL (docs/live.md)
#   make demo-refund  the refund case: by rule, by a person, an answer that is lost, and taken back (YES=1 asks nothing)
#   make test         all tests                     make check       lint, format, types, import rules
#   make guarantees   one line per promise          make bench       figures, one line each
#   make authority    random orders of votes, edits and revocations, long (ROUNDS=n)
#   make course       random messages, clock steps and outages against a model of the run, long (ROUNDS=n)
#   make chaos        kill -9 of every part at every step of the run; a table (ROUNDS=n, SEED=n; ROUND=k plays one)
#   make long         tests that take minutes: a real minute's expiry in a thousand messages, floods, kills, every order,
#                     whole runs on PostgreSQL; ladders, leases, freezes, escalations, ends, edits and the times of questions
#                     on servers of their own; authority, settling and rebuilding from the terminal
#   make docs         README tables, made anew
#   make setup        .venv from requirements.lock; PYTHON=... names the interpreter

VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
STAMP  := $(VENV)/.installed
PYTHON ?=

# Tests start hundreds of processes; each would compile all of the house anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo demo-refund live test check guarantees bench authority course chaos long lock docs format clean

setup: $(STAMP)

# Keeps a .venv that works, so that a changed lock installs only what changed.
$(STAMP): requirements.lock
	@fits='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'; \
	if ! { $(PY) -c "$$fits" && $(PY) -m pip --version; } >/dev/null 2>&1; then \
	  chosen=; without=; \
	  for python in $(or $(PYTHON),python3.11 python3.12 python3.13 python3); do \
	    "$$python" -c "$$fits" >/dev/null 2>&1 || continue; \
	    if "$$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then chosen=$$python; break; fi; \
	    without=$$python; \
	  done; \
	  if [ -z "$$chosen" ] && [ -n "$$without" ]; then \
	    echo "make: $$without has no ensurepip, which .venv needs: install it (Debian and Ubuntu:" \
	      "apt install python3-venv) or name another Python by PYTHON=..." >&2; exit 1; \
	  fi; \
	  if [ -z "$$chosen" ]; then \
	    echo "make: no Python 3.11, 3.12 or 3.13 among: $(or $(PYTHON),python3.11 python3.12 python3.13 python3)." \
	      "Install one or name it by PYTHON=..." >&2; exit 1; \
	  fi; \
	  echo "Creating $(VENV) with $$("$$chosen" --version)"; \
	  "$$chosen" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "Installing the locked packages into $(VENV) (once; a minute or two)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r requirements.lock
	@touch $@

demo: $(STAMP)
	@$(PY) starter.py demo $(if $(filter 1,$(YES)),--yes)

# One report with the models that OPENAI_API_KEY, OPENAI_BASE_URL and COUNTERSIGN_DRAFT_MODEL name; see docs/live.md.
live: $(STAMP)
	@$(PY) starter.py live $(if $(filter 1,$(YES)),--yes)

demo-refund: $(STAMP)
	@$(PY) starter.py demo-refund $(if $(filter 1,$(YES)),--yes)

# Not the files with most tests first: the slowest, whole runs from a terminal, have few, and would be left to the end alone.
test: $(STAMP)
	$(PY) -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not long" --durations=10 -p tests.support.guarantees --require-guarantees

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

guarantees: $(STAMP)
	@$(PY) -m pytest -q -n 4 --dist loadfile -m guarantee -p tests.support.guarantees --require-guarantees

bench: $(STAMP)
	@$(PY) -m tests.bench

# No order of votes, edits, revocations and repeats yields an effect without a quorum; `make test` has a short run of it.
authority: $(STAMP)
	@AUTHORITY_ROUNDS=$(or $(ROUNDS),100) $(PY) -m pytest -q tests/authority/test_no_effect_without_quorum.py

# No course of messages, time and outages takes a run elsewhere than a model says; `make test` has a short run of it.
course: $(STAMP)
	@COURSE_ROUNDS=$(or $(ROUNDS),500) $(PY) -m pytest -q tests/course/test_course.py

# What `make test` leaves out, since it takes minutes.
long: $(STAMP)
	@$(PY) -m pytest -q -m long

# Every part killed at every step of a refund's run, and every fault of the payment service; `make test` has a few rounds.
chaos: $(STAMP)
	@ROUNDS=$(or $(ROUNDS),200) ROUND=$(ROUND) SEED=$(or $(SEED),0) $(PY) -m tests.chaos

# The lock names versions and hashes, no address: any index or mirror that has these files will do.
lock: $(STAMP)
	@$(PY) -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --quiet --output-file requirements.lock

# Writes the README's tables of commands and settings anew; a test compares them with the program.
docs: $(STAMP)
	@$(PY) -m tests.support.readme

format: $(STAMP)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
