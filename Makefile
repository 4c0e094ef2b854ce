# Two commands do everything, installs included:
#   make demo   set up, then augment the example corpus and show sentences before and after
#   make test   set up, then run every check
.PHONY: demo test docs setup browser pictures lint types unit bench bench-models fuzz clean
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

help:
	@echo "make demo   set up, then augment the example corpus and show it"
	@echo "make test   set up, then run every check"
	@echo "make docs   set up, then build the pages of the documentation and say where they are"
	@echo "make bench  set up what the benchmarks need, run them, write benchmarks/results.md"
	@echo "make bench-models  the same for what runs on models, beside its peers; writes benchmarks/models.md"
	@echo "make pictures  draw the pictures of the README anew"
	@echo "make fuzz   ten minutes of fuzzing for every reader of a format"

# The stamp names what the environment was made from; a change there makes it anew.
$(VENV)/.made: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "entaug needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# Word lists and models that methods need, fetched once into the cache folder of the user and checked by their sums.
setup: $(VENV)/.made
	$(BIN)/entaug models prepare

# The tests of the HTML report want Chromium; Debian's is taken where we may install it, and without one they skip.
browser:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; \
	then :; \
	elif command -v apt-get >/dev/null && { [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then \
	  as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends chromium >/dev/null \
	    || echo "Chromium could not be installed: the tests of the HTML report in a browser will skip"; \
	else echo "no Chromium, and no right to install it: the tests of the HTML report in a browser will skip"; fi

# The pictures of the README, drawn anew.
pictures: $(VENV)/.made browser
	ENTAUG_PICTURES=1 $(BIN)/pytest -q tests/report/test_page_browser.py -k pictures

demo: setup
	$(BIN)/python examples/demo.py

test: lint types unit

lint: $(VENV)/.made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.made
	$(BIN)/mypy

# Two tests at a time, each on one core.
WORKERS ?= 2
unit: setup browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal

# With every warning an error, as the tests build them; -E reads everything anew, as pages depend on code.
docs: $(VENV)/.made
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "$(CURDIR)/docs/_build/html/index.html"

# The peers that the benchmarks compare with live in an environment of their own.
$(VENV)-bench/.made: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check -e . -r benchmarks/requirements.txt
	touch $@

bench: setup $(VENV)-bench/.made
	$(VENV)-bench/bin/python benchmarks/speed.py --write benchmarks/results.md

# Those of the models need transformers 4, and nothing of entaug.
$(VENV)-peers/.made: benchmarks/requirements-peers.txt
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements-peers.txt
	touch $@

bench-models: setup $(VENV)-peers/.made
	$(BIN)/python benchmarks/models.py --peers $(VENV)-peers/bin/python --write benchmarks/models.md

# Ten minutes of coverage-guided fuzzing for each reader, or FORMATS="jsonl brat" MINUTES=2. What it finds is written
# beside, as crash-*; mend the reader and keep it under fuzz/seeds.
MINUTES ?= 10
FORMATS ?= $(shell ls fuzz/seeds)
fuzz: $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps atheris
	for name in $(FORMATS); do \
	  mkdir -p fuzz/corpus/$$name && $(BIN)/python fuzz/fuzz_formats.py $$name \
	    -max_total_time=$$(($(MINUTES) * 60)) fuzz/corpus/$$name fuzz/seeds/$$name || exit 1; \
	done

clean:
	rm -rf $(VENV) $(VENV)-bench $(VENV)-peers demo-output
	cd docs && rm -rf _build _made filters formats measured measures methods reference
