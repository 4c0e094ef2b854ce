# entaug: what a checkout can do. `make help` lists the targets.
#   make demo   install, augment the example corpus, show sentences before and after, write the report
#   make test   install, then run every check that CI runs
.PHONY: hashes release-check llama ray label-studio demo demo-all test test-fast test-all unit docs setup browser pictures lint types bench-all bench-compare fuzz clean
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

help:
	@echo "make demo          install, augment the example corpus, show sentences before and after, write the report"
	@echo "make demo-all      the same with every method; installs all starter models (15 minutes on two cores)"
	@echo "make test-fast     core, methods, filters and formats with fakes; under 90 seconds"
	@echo "make test          lint, types and the tests that CI runs; under 10 minutes on two cores"
	@echo "make test-all      all tests, also the slow ones: full property tests, every method under hash seeds, the whole demo"
	@echo "make docs          build the documentation and print where it is"
	@echo "make bench-all     run all speed comparisons and write benchmarks/speed.md; ONLY=rules,start for some"
	@echo "make bench-compare run them and name what became slower by more than a tenth than recorded"
	@echo "make llama         build a llama.cpp server (fifteen minutes, once) and test GGUF files and prompts with it"
	@echo "make ray           install Ray beside, and test augmentation on a cluster of this machine"
	@echo "make label-studio  install Label Studio beside, and test entaug serve with it"
	@echo "make pictures      draw the pictures of the README and the documentation"
	@echo "make release-check build wheel and sdist, install them with each extra, run the fast tests outside the checkout"
	@echo "make fuzz          fuzz every format reader for ten minutes"
	@echo "make clean         remove environments and everything that was built"

# The stamp records what the environment was installed from; a change there installs anew. All packages are compared with
# their sums but torch, whose builds and dependencies differ by machine, and what a system needs besides.
$(VENV)/.installed: pyproject.toml constraints.txt constraints-hashed.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "entaug needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r constraints-hashed.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[dev]'
	touch $@

# After a change of constraints.txt: the sums of its packages.
hashes:
	$(PYTHON) -m venv $(VENV)-uv
	$(VENV)-uv/bin/python -m pip install --quiet --disable-pip-version-check uv
	grep -v '^torch==' constraints.txt | $(VENV)-uv/bin/uv pip compile --quiet --no-deps --generate-hashes --no-header \
	  --no-annotate --python-version 3.11.7 - -o constraints-hashed.txt

# Starter models: fetched once into the user's cache folder and checked by their sums; the last three are for tests.
setup: $(VENV)/.installed
	$(BIN)/entaug models prepare
	$(BIN)/entaug models prepare tiny-bert wordnet-any
	$(BIN)/entaug models prepare multilingual-e5 || echo "multilingual-e5 is not prepared: its tests will skip"

# The tests of the HTML report run in Chromium. Debian's is installed where we may; without one these tests skip.
browser:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; \
	then :; \
	elif command -v apt-get >/dev/null && { [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then \
	  as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends chromium >/dev/null \
	    || echo "Chromium could not be installed: the tests of the HTML report in a browser will skip"; \
	else echo "no Chromium, and no right to install it: the tests of the HTML report in a browser will skip"; fi

pictures: $(VENV)/.installed browser
	ENTAUG_PICTURES=1 $(BIN)/pytest -q tests/report -k "browser and picture"

# The demo needs the model of the method `lm`, and two from which its label guard knows names (511 MB).
demo: $(VENV)/.installed
	$(BIN)/entaug models prepare --for lm
	$(BIN)/python examples/demo.py

demo-all: setup
	$(BIN)/python examples/demo.py --all

test: lint types unit

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

# Two test processes, each on one core.
WORKERS ?= 2
PYTEST = OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal

# Core, methods, filters and formats, with fakes in place of models.
FAST = tests/test_*.py tests/core tests/config tests/files tests/methods tests/filters tests/formats tests/metrics
test-fast: $(VENV)/.installed
	ENTAUG_TESTS=fast $(PYTEST) -m "not slow and not models and not corpora" $(FAST)

unit: setup browser
	$(PYTEST) -m "not slow"

test-all: lint types setup browser
	ENTAUG_TESTS=all $(PYTEST)

# A llama.cpp server is compiled in an environment of its own; tests use it where it is there and skip elsewhere.
$(VENV)-llama/.installed:
	$(PYTHON) -m venv $(VENV)-llama
	$(VENV)-llama/bin/python -m pip install --quiet --disable-pip-version-check 'llama-cpp-python[server]==0.3.36'
	touch $@

llama: $(VENV)/.installed $(VENV)-llama/.installed
	$(BIN)/entaug models prepare smollm2-gguf
	$(PYTEST) tests/backends/test_llama_server.py

# Ray is large and few need it: it has an environment of its own, which sees all packages of the other one.
$(VENV)-ray/.installed: $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)-ray
	$(VENV)-ray/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt 'ray>=2.49'
	$(BIN)/python -c 'import site; print("import site; site.addsitedir(%r)" % site.getsitepackages()[0])' \
	  > "$$($(VENV)-ray/bin/python -c 'import site; print(site.getsitepackages()[0])')/entaug-environment.pth"
	touch $@

ray: $(VENV)-ray/.installed
	OMP_NUM_THREADS=1 $(VENV)-ray/bin/python -m pytest -q tests/commands/test_ray.py

# Label Studio has an environment of its own, as its dependencies are pinned; the tests start it on loopback with an empty folder.
$(VENV)-ls/.installed:
	$(PYTHON) -m venv $(VENV)-ls
	$(VENV)-ls/bin/python -m pip install --quiet --disable-pip-version-check 'label-studio==1.23.2'
	touch $@

label-studio: $(VENV)/.installed $(VENV)-ls/.installed
	OMP_NUM_THREADS=1 $(BIN)/pytest -q tests/serving/test_label_studio.py

# With every warning an error, as the tests build them; -E reads everything anew, as pages depend on code.
docs: $(VENV)/.installed
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "$(CURDIR)/docs/_build/html/index.html"

# The peers that the benchmarks compare with live in an environment of their own: some need transformers 4.
$(VENV)-peers/.installed: benchmarks/requirements-peers.txt
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements-peers.txt
	touch $@

# ONLY=rules,start for some parts; what is recorded of the others stays.
SUITE = $(BIN)/python benchmarks/suite.py
BENCH = run --peers $(VENV)-peers/bin/python $(if $(ONLY),--only $(ONLY))
bench-all: setup $(VENV)-peers/.installed
	$(SUITE) $(BENCH)

bench-compare: setup $(VENV)-peers/.installed
	rm -f $(VENV)-peers/speed.*
	$(SUITE) $(BENCH) --json $(VENV)-peers/speed.json --page $(VENV)-peers/speed.md
	$(SUITE) compare benchmarks/speed.json $(VENV)-peers/speed.json

# What is published, as a user gets it; EXTRAS="report llm" for some extras.
release-check: $(VENV)/.installed
	$(BIN)/python benchmarks/release_check.py $(EXTRAS)

# Ten minutes of coverage-guided fuzzing for each reader, or FORMATS="jsonl brat" MINUTES=2. What it finds is written
# beside, as crash-*; mend the reader and keep it under fuzz/seeds.
MINUTES ?= 10
FORMATS ?= $(shell ls fuzz/seeds)
fuzz: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps atheris
	for name in $(FORMATS); do \
	  mkdir -p fuzz/corpus/$$name && $(BIN)/python fuzz/fuzz_formats.py $$name \
	    -max_total_time=$$(($(MINUTES) * 60)) fuzz/corpus/$$name fuzz/seeds/$$name || exit 1; \
	done

clean:
	rm -rf $(VENV) $(VENV)-llama $(VENV)-ray $(VENV)-ls $(VENV)-peers $(VENV)-uv demo-output
	cd docs && rm -rf _build index.md changelog.md contributing.md commands filters formats measured measures methods reference
