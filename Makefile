# Everything a person types. `make up` and `make test` need Python 3.11 or newer and nothing else.

VENV ?= .venv
PORT ?= 8000
VAR ?= var
ARGS ?=

# The first Python that is new enough. 3.11 to 3.13 come first: they have a Redis wheel.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& { echo "$$python"; exit; }; done; echo python3)
BIN := $(VENV)/bin
WITHOUT_SERVERS = env -u DATABASE_URL -u REDIS_URL

.PHONY: up down demo test check drill bench ready ready-dev lint types imports migrations

up: ready  ## Start the trial: make up [PORT=8000] [VAR=var]
	@exec $(BIN)/python manage.py up --port "$(PORT)" --var "$(VAR)"

down: ready  ## Stop the trial that runs in VAR
	@exec $(BIN)/python manage.py up --stop --var "$(VAR)"

demo: ready  ## One refund from request to truth, in a throw-away trial
	@exec $(BIN)/python manage.py demo

# By two processes, each with servers of its own; by one for a part of it, or on servers that were named.
test: ready-dev  ## The whole suite
	@$(BIN)/python -m pytest $(if $(ARGS)$(DATABASE_URL),$(ARGS),-n 2 --dist loadfile)

check: lint types imports migrations test  ## Everything that CI runs

lint: ready-dev
	@$(BIN)/ruff check .

types: ready-dev
	@$(BIN)/mypy manage.py config runtime_app approvals tests

imports: ready-dev
	@$(BIN)/lint-imports --no-cache

migrations: ready-dev
	@$(WITHOUT_SERVERS) $(BIN)/python -m runtime_app.trial.cluster -- \
		$(BIN)/python -W error manage.py makemigrations --check --dry-run

drill: ready-dev  ## The long versions of the crash, pause, outage and model runs, before a release
	@COUNTERSIGN_DRILL=1 $(BIN)/python -m pytest tests/reliability tests/model tests/approvals/test_property.py --timeout 3600 $(ARGS)

bench: ready-dev  ## Figures as ratios in one run; written to bench.json. ARGS=profile shows where the time goes
	@"$(PYTHON)" runtime_app/trial/bootstrap.py "$(VENV)-bench" tests/bench/requirements.txt
	@exec $(BIN)/python -m tests.bench --peers "$(VENV)-bench" $(ARGS)

ready:
	@command -v "$(PYTHON)" >/dev/null || { echo "Countersign needs Python 3.11 or newer, and this machine has none on the PATH: install it, or name one with PYTHON=/path/to/python3." >&2; exit 1; }
	@"$(PYTHON)" runtime_app/trial/bootstrap.py "$(VENV)" requirements.txt

ready-dev:
	@command -v "$(PYTHON)" >/dev/null || { echo "Countersign needs Python 3.11 or newer, and this machine has none on the PATH: install it, or name one with PYTHON=/path/to/python3." >&2; exit 1; }
	@"$(PYTHON)" runtime_app/trial/bootstrap.py "$(VENV)" requirements-dev.txt
