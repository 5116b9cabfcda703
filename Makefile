# make install: .venv with everything. make demo: a release from the curated seeds. make seeds-release DATE=…: Empathy-Eval seeds 1.0. make test, make check, make docs.
# make check-long: what make test tries on a sample, in full: forgeries, kills, stops over Ray, odd answers, simulated metrics, groups and raters.
# make golden: records what the golden test compares with, and says which entries changed.
PYTHON ?= python3
BIN := .venv/bin
DEMO := build/demo
SEEDS := build/seeds
# What Python compiled is kept, whatever the shell says: the tests start it some hundreds of times.
export PYTHONDONTWRITEBYTECODE :=
# Two at a time, each on one core; then those that measure time, alone.
TESTS = OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not quiet" && \
	$(BIN)/pytest -m quiet `grep -rl --include='test_*.py' 'mark\.quiet' tests`

.PHONY: install demo seeds-release test check check-long golden format docs clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --disable-pip-version-check --quiet --progress-bar off --no-compile --constraint constraints.txt --editable '.[all,dev]'
	touch $@

demo: .venv/installed
	$(BIN)/empathy-eval build release/demo.yaml --out $(DEMO)
	$(BIN)/empathy-eval release $(DEMO) --out $(DEMO)/release --version 0.1.0

# Empathy-Eval seeds 1.0, from nothing, without a network or a token once it is installed. Nothing here reads a clock: the date is given.
seeds-release: .venv/installed
	@test -n "$(DATE)" || { echo "name the date of the release: make seeds-release DATE=YYYY-MM-DD" >&2; exit 2; }
	$(BIN)/empathy-eval build release/seeds.yaml --out $(SEEDS)
	$(BIN)/empathy-eval release $(SEEDS) --out $(SEEDS)/release --version 1.0.0 --date $(DATE)
	$(BIN)/empathy-eval verify $(SEEDS)/release
	$(BIN)/empathy-eval publish $(SEEDS)/release --dry-run

test: .venv/installed
	$(TESTS)

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# The types are checked while the first tests run, which leave a core idle here and there.
	$(BIN)/mypy & types=$$!; $(TESTS); tests=$$?; wait $$types && exit $$tests

check-long: .venv/installed
	KILLS=100 STOPS=40 LONG=1 $(BIN)/pytest tests/completions/test_openai_endpoint.py tests/raters/test_judging.py tests/raters/test_teaching.py tests/generation/test_on_ray.py tests/journeys/test_strangers.py tests/evaluation/test_comparisons.py tests/evaluation/test_fairness.py tests/raters/test_against_people.py tests/raters/test_study_clusters.py tests/raters/test_study_permutation.py tests/raters/test_study_page.py tests/raters/test_reliability_page.py tests/evaluation/test_page.py tests/releases/test_explore_page.py tests/base/test_schemas.py tests/journeys/test_readme.py tests/journeys/test_examples.py tests/evaluation/test_crossed.py tests/journeys/test_in_harness.py tests/releases/test_forgeries.py -k "forgery or shortcut_gets_far or readme or quick_answer or kills or stop or interrupt or whatever_comes or two_metrics or simulated_groups or scripted or very_many_people or everybody or cover_95 or without_an_effect"

golden: .venv/installed
	$(BIN)/python -m tests.golden

# docs/configuration.md, from the descriptions in schemas/input.
docs: .venv/installed
	$(BIN)/python docs/configuration.py

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build .venv
