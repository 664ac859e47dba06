# Two commands for a new user: `make demo` and `make test`. The rest is what they are made of.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
comma := ,
EXTRAS := engines
# make test TORCH=1 also installs torch and runs the tests that need it
ifdef TORCH
TEST_EXTRAS := engines,exports,dev,torch
else
TEST_EXTRAS := engines,exports,dev
endif

.PHONY: demo test env lint clean

demo: $(VENV)/.$(EXTRAS)
	. $(BIN)/activate && snakemake --cores 8 --quiet all
	@. $(BIN)/activate && python scripts/comparison.py --show

test: $(VENV)/.$(subst $(comma),-,$(TEST_EXTRAS))
	. $(BIN)/activate && python -m pytest

env: $(VENV)/.$(EXTRAS)


$(VENV)/.%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tokenaxis needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(subst -,$(comma),$*)]'
	@touch $@

lint: $(VENV)/.engines-exports-dev
	. $(BIN)/activate && ruff check . && ruff format --check . && snakefmt --check Snakefile workflow/rules && snakemake --lint && mypy

clean:
	rm -rf results .snakemake
