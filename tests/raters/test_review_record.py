"""The record of reviews, and the next release cut from it."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import derived_random
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import split_of
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.raters.review.export import export_review
from empathy_eval.raters.review.human_evaluation import fleiss_kappas, human_evaluation
from empathy_eval.raters.review.import_reviews import import_reviews
from empathy_eval.raters.review.record import CRITERIA, content_hash, corrections, decision_rows, decisions, rating_rows, read_record
from empathy_eval.raters.review.sample import ReviewDesign
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.compare.diff import diff
from empathy_eval.releases.verify.verify import verify

from tests.conftest import copy_world, demo_file, released_quickly
from tests.doubles import made_once
from tests.doubles.raters import FORMS, fill, kind_and_cold
from tests.releases.test_write import table

PAPER = read_yaml(data_folder("release") / "paper_ratings.yaml", "paper_ratings")


def vote(dialogue: str, rater: int, decision: str, tags: list[dict[str, Any]] | None = None, content: str = "0" * 12) -> dict[str, Any]:
    said = {"decision": decision, "reason": f"r{rater}", "tags": tags or []}
    return {"kind": "dialogue", "dialogue_id": dialogue, "content": content, "rater": f"rater-{rater:02d}", **said}


def rating(pair: str, variant: str, rater: int, value: int, **more: Any) -> dict[str, Any]:
    about: dict[str, Any] = {"kind": "variant", "review": "x", "pair_id": pair, "variant": variant, "samples": ["pairs"]}
    about |= {"text": "0" * 12, "rater": f"rater-{rater:02d}"}
    return {**about, **dict.fromkeys(CRITERIA, value), **more}


@pytest.mark.parametrize(
    ("remove", "keep", "removed"), [(2, 1, True), (1, 2, False), (1, 1, True), (0, 1, False), (1, 0, True), (3, 0, True)]
)
def test_a_majority_removes_and_so_does_a_tie(remove: int, keep: int, removed: bool) -> None:
    votes = [vote("017-seed", rater, "remove" if rater < remove else "keep") for rater in range(remove + keep)]
    (made,) = decisions({"judgements": votes})
    assert (made.remove, made.keep, made.removed) == (remove, keep, removed)
    assert made.reasons == tuple(f"r{rater}" for rater in range(remove))


def test_tags_found_wrong_are_listed_with_what_they_should_be() -> None:
    def tag(strategy: str | None) -> list[dict[str, Any]]:
        return [{"turn": 3, "tag": "Clarification", "right": strategy is None, **({"strategy": strategy} if strategy else {})}]

    record = {
        "judgements": [vote("017-seed", n, "keep", tag(said)) for n, said in enumerate(["Offer Hope", "Offer Hope", "Affirmation", None])]
    }
    assert [(one.turn, one.tag, one.should_be, one.raters, one.of) for one in corrections(record)] == [
        (3, "Clarification", "Affirmation", 1, 4),
        (3, "Clarification", "Offer Hope", 2, 4),
    ]


def test_means_are_of_ratings_and_a_single_pair_has_no_interval() -> None:
    judgements = [
        rating("017-seed-t03", "apathetic", 1, 1),
        rating("017-seed-t03", "apathetic", 2, 2),
        rating("017-seed-t05", "empathetic", 1, 3),
    ]
    judgements += [rating("017-seed-t05", "apathetic", 3, 3), rating("017-seed-t03", "apathetic", 4, 3, attempt=1)]
    rows = {(row["variant"], row["criterion"]): row for row in human_evaluation({"judgements": judgements}, PAPER, 100, 0)}
    cold = rows["apathetic", "empathy"]
    # (1 + 2 + 3) / 3: the rejected candidate's 3 does not count. Drawing two of the two pairs gives 3/2, 6/3 or 3/1.
    assert (cold["mean"], cold["low"], cold["high"]) == (2.0, 1.5, 3.0)
    assert (cold["raters"], cold["items"], cold["ratings"], cold["paper"]) == (3, 2, 3, 1.08)
    warm = rows["empathetic", "empathy"]
    assert (warm["mean"], warm["low"], warm["high"], warm["items"]) == (3.0, None, None, 1)


def test_intervals_are_the_same_for_the_same_seed_and_shrink_with_pairs() -> None:
    def width(pairs: int) -> float:
        judged = [rating(f"017-seed-t{n:03d}", "apathetic", r, 1 + (n + r) % 3) for n in range(pairs) for r in range(2)]
        first, again = (next(human_evaluation({"judgements": judged}, PAPER, 500, 7)) for _ in range(2))
        assert first == again
        return float(first["high"] - first["low"])

    # Twenty-five times the pairs: a fifth of the width.
    assert width(500) == pytest.approx(width(20) / 5, rel=0.35)


def test_the_same_pseudonym_in_two_reviews_is_two_raters() -> None:
    judgements = [rating("017-seed-t03", "apathetic", 1, 1, review=f"s1-{sign * 64}") for sign in "ab"]
    raters = [
        {row["rater"] for row in rating_rows({"judgements": judgements, "reviews": reviews})} for reviews in ({"a": 0}, {"a": 0, "b": 0})
    ]
    assert raters == [{"rater-01"}, {"rater-01@aaaaaaaa", "rater-01@bbbbbbbb"}]


def test_a_text_that_changed_from_one_review_to_another_is_another_item() -> None:
    judgements = [
        rating("017-seed-t03", "apathetic", 1, 1),
        rating("017-seed-t03", "apathetic", 2, 1, text="1" * 12),
        rating("017-seed-t05", "apathetic", 1, 1),
    ]
    judgements += [vote("017-seed", 1, "keep"), vote("017-seed", 2, "keep", content="1" * 12), vote("025-seed", 1, "keep")]
    record = {"judgements": judgements, "reviews": {"x": 0}}
    changed = {f"017-seed-t03:apathetic:{sign * 12}" for sign in "01"}
    assert {row["item"] for row in rating_rows(record)} == {*changed, "017-seed-t05:apathetic"}
    assert {row["item"] for row in decision_rows(record)} == {"017-seed:000000000000", "017-seed:111111111111", "025-seed"}


def test_the_kappa_of_a_release_is_of_the_two_variants_alone() -> None:
    judgements = [
        rating(f"017-seed-t{turn:02d}", variant, rater, 1 + (turn + rater // 2) % 3)
        for turn in range(6)
        for variant in ("apathetic", "empathetic")
        for rater in (1, 2, 3)
    ]
    more = [
        rating("017-seed-t09", variant, rater, rater, samples=[sample], **about)
        for variant, sample, about in (
            ("apathetic", "rejected", {"attempt": 0}),
            ("near_empathetic", "cells", {}),
            ("empathetic", "rejected", {}),
        )
        for rater in (1, 2, 3)
    ]
    kappas = [fleiss_kappas({"judgements": ones, "reviews": {"x": 0}}, 20, 0) for ones in (judgements, judgements + more)]
    assert kappas[0] == kappas[1] and kappas[0]["empathy"].n == 12
    assert fleiss_kappas({"judgements": more, "reviews": {"x": 0}}, 20, 0) == {}


@pytest.mark.parametrize(("text", "said"), [("{", "is not JSON"), ('{"format": 1}', 'misses "reviews"'), (None, "cannot be read")])
def test_a_record_that_is_none_is_refused(text: str | None, said: str, tmp_path: Path) -> None:
    if text:
        (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=said):
        read_record(tmp_path / "r.json")


# The round trip: the seeds of some scenarios, ten raters who err with a known chance.
ERROR = 0.1
REMOVED = {"017-seed": 3, "025-seed": 2, "040-seed": 1}
NUMBERS = tuple(f"{number:03d}" for number in (*range(1, 10), 17, 25, 40))
PAIRS, DIALOGUES = 87, 12
# Each turn of the longest dialogue is rated by six, and the whole by three.
RATERS = 66


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> tuple[Path, Path]:
    """A build of the seeds, and its release."""

    def make(folder: Path) -> None:
        world = load_catalogue(copy_world(folder / "scenarios", NUMBERS))
        released_quickly(folder, world, prompts, metrics=["length"], bootstrap=40)

    folder, _ = made_once.copied(tmp_path_factory, "round", make)
    return folder / "build", folder / "release"


Said = dict[tuple[str, str, str], int]


@pytest.fixture(scope="module")
def trip(builds: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """The record of many raters in four forms, and what each of them meant by (item, rater, criterion)."""
    folder, said, votes = tmp_path_factory.mktemp("trip"), Said(), defaultdict[str, int](int)
    made = export_review(builds[1], folder / "review", ReviewDesign(pairs=PAIRS, dialogues=DIALOGUES, raters=RATERS, seed=3))
    assert (made.sample.count("variant"), made.sample.count("dialogue")) == (PAIRS, DIALOGUES)

    def judge(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        answer = kind_and_cold(code, entry)
        if entry["kind"] == "dialogue":
            votes[entry["dialogue_id"]] += 1
            if votes[entry["dialogue_id"]] <= REMOVED.get(entry["dialogue_id"], 0):
                answer |= {"decision": "remove", "reason": "it `wanders` off"}
            return answer
        for criterion in CRITERIA:
            rng = derived_random("err", entry["pair_id"], entry["variant"], entry["rater"], criterion)
            answer[criterion] = 2 if rng.random() < ERROR else answer[criterion]
            said[f"{entry['pair_id']}:{entry['variant']}", entry["rater"], criterion] = answer[criterion]
        return answer

    files = [path for n, rater in enumerate(made.loads) for path in fill(folder / "review", rater, FORMS[n % 4], judge, folder / "in")]
    import_reviews(builds[1], files, folder / "review" / "key.json", folder / "reviews.json")
    return folder / "reviews.json", said


def agreement(ratings: Said, criterion: str) -> Fraction:
    """The share of equal ratings among all pairs of raters of one item."""
    by_item = defaultdict[str, list[int]](list)
    for (item, _, one), value in sorted(ratings.items()):
        if one == criterion:
            by_item[item].append(value)
    pairs = [a == b for values in by_item.values() for a, b in combinations(values, 2)]
    return Fraction(sum(pairs), len(pairs))


def test_the_ratings_of_a_round_trip_are_what_the_raters_meant(trip: tuple[Path, Said]) -> None:
    record, said = trip
    with record.with_name("reviews.ratings.csv").open() as stream:
        found = {(row["item"], row["rater"], row["criterion"]): int(row["rating"]) for row in csv.DictReader(stream)}
    assert found == said
    assert len(found) == PAIRS * 2 * 3 * 3
    for criterion in CRITERIA:
        assert agreement(found, criterion) == agreement(said, criterion)
    # Two raters agree if both err or neither does; 522 pairs of raters a criterion leave about 0.01 of the mean to chance.
    mean = sum(agreement(found, criterion) for criterion in CRITERIA) / len(CRITERIA)
    assert float(mean) == pytest.approx(ERROR**2 + (1 - ERROR) ** 2, abs=0.03)


@pytest.mark.e2e
def test_the_next_release_leaves_removed_dialogues_out_and_nothing_else_moves(
    builds: tuple[Path, Path], trip: tuple[Path, Said], tmp_path: Path
) -> None:
    later = tmp_path / "release"
    made = release(builds[0], later, "0.2.0", reviews=trip[0])
    ids = [{row["dialogue_id"] for row in table(folder, "dialogues")} for folder in (builds[1], later)]
    assert ids[0] - ids[1] == {"017-seed", "025-seed"}
    assert ids[1] < ids[0]
    for config in ("pairs", "controls"):
        assert not [row for row in table(later, config) if row["dialogue_id"] in ("017-seed", "025-seed")]
    found = diff(builds[1], later)
    assert (found.moved, found.changed, found.added) == ((), (), ())
    assert found.removed == found.by_review == ("017-seed", "025-seed")
    assert "by review       2  017-seed, 025-seed" in str(found)
    assert all(split_of(row["dialogue_id"]) for row in table(later, "dialogues"))
    assert verify(later, fast=True) == []

    reviews = made.manifest["reviews"]
    assert [(one["dialogue_id"], one["remove"], one["keep"]) for one in reviews["removed"]] == [("017-seed", 3, 0), ("025-seed", 2, 1)]
    assert (reviews["raters"], reviews["judgements"]) == (RATERS, PAIRS * 2 * 3 + DIALOGUES * 3)
    for row in reviews["ratings"]:
        values = [
            value
            for (item, _, criterion), value in trip[1].items()
            if item.endswith(f":{row['variant']}") and criterion == row["criterion"]
        ]
        assert row["mean"] == pytest.approx(sum(values) / len(values), abs=5e-5)
        assert row["low"] < row["mean"] < row["high"]
        assert (row["raters"], row["items"], row["ratings"]) == (RATERS, PAIRS, 3 * PAIRS)
        assert row["paper"] == PAPER[row["variant"]][row["criterion"]]
    card, changelog = ((later / name).read_text() for name in ("README.md", "CHANGELOG.md"))
    assert "Removed by review: dialogue `025-seed` (2 of 3 raters; `it 'wanders' off`; `it 'wanders' off`)" in changelog
    assert "`017-seed` (3 of 3; " in card
    assert "asked for it: 2 (`017-seed`" in card
    empathy = next(row for row in reviews["ratings"] if (row["variant"], row["criterion"]) == ("apathetic", "empathy"))
    assert (
        f"| apathetic | empathy | {empathy['mean']:.2f} [{empathy['low']:.2f}, {empathy['high']:.2f}] | {RATERS} | {PAIRS} "
        f"| {3 * PAIRS} | 1.08 |" in card
    )
    assert reviews["signature"] in card


def test_a_removed_dialogue_that_is_put_back_is_a_fault(builds: tuple[Path, Path], tmp_path: Path) -> None:
    import shutil

    copy = Path(shutil.copytree(builds[1], tmp_path / "release"))
    manifest = json.loads((copy / "manifest.json").read_text())
    removed = [{"dialogue_id": "017-seed", "remove": 3, "keep": 0, "reasons": []}]
    nothing = {"releases": [], "changed_since": [], "ratings": [], "kappa": {}, "signature": "x", "raters": 3, "judgements": 3}
    manifest["reviews"] = {"record": "0" * 64, "removed": removed, **nothing}
    (copy / "manifest.json").write_text(manifest_text(seal_manifest(manifest)))
    assert '"017-seed" is in the data, but is listed as left out' in "\n".join(map(str, verify(copy, fast=True)))


@pytest.mark.e2e
def test_a_decision_on_a_text_that_is_another_now_is_named_and_not_taken(
    builds: tuple[Path, Path], trip: tuple[Path, Said], tmp_path: Path
) -> None:
    record = json.loads(trip[0].read_text())
    for one in record["judgements"]:
        if one.get("dialogue_id") == "017-seed":
            one["content"] = "0" * 12
    (tmp_path / "reviews.json").write_text(json.dumps(record))
    made = release(builds[0], tmp_path / "release", "0.2.0", reviews=tmp_path / "reviews.json")
    assert made.manifest["reviews"]["changed_since"] == ["017-seed"]
    assert [one["dialogue_id"] for one in made.manifest["reviews"]["removed"]] == ["025-seed"]
    assert "Not removed, because the text has changed since: `017-seed`." in (tmp_path / "release" / "README.md").read_text()


def test_a_release_without_reviews_says_nothing_of_them(builds: tuple[Path, Path]) -> None:
    assert json.loads((builds[1] / "manifest.json").read_text())["reviews"] is None
    assert "raters" not in (builds[1] / "README.md").read_text()


@pytest.mark.e2e
def test_where_the_one_of_two_duplicates_that_stays_is_removed_the_other_one_takes_its_place(
    catalogue: Catalogue, prompts: Prompts, tmp_path: Path
) -> None:
    seed = catalogue[17].seed
    assert seed
    # The same dialogue but for a word, as scenario 19: of the two the test split's, 019, stays.
    opening = replace(seed.turns[0], text=seed.turns[0].text.replace("Fifty-two", "Fifty-three"))
    other = replace(seed, turns=(opening, *seed.turns[1:]))
    doubled = replace(catalogue, scenarios=(*catalogue.scenarios, replace(catalogue[17], number=19, slug="other", seed=other)))
    config = load_configuration(demo_file(tmp_path, report={"metrics": ["bleu", "rouge-l"], "bootstrap": 10}))
    build(Recipe(config, doubled, prompts), tmp_path / "b")
    content = content_hash({"role": turn.role, "text": turn.text} for turn in other.turns)
    source = "0" * 64
    review = f"s1-{source}"
    settings = dict.fromkeys(("pairs", "dialogues", "raters", "per_item", "cells", "rejected", "seed"), 0)
    judged = vote("019-seed", 1, "remove", content=content)
    judged |= {"review": review, "item": "a" * 12, "comment": "", "form": "page", "source": source}
    record = {
        "format": 1, "reviews": {review: {"release": {"name": "r", "version": "0.1.0", "seal": review}, "settings": settings}},
        "sources": {source: {"file": "f.json", "form": "page", "review": review, "rater": "rater-01", "judgements": 1}},
        "judgements": [judged], "replaced": [],
    }  # fmt: skip
    (tmp_path / "reviews.json").write_text(json.dumps(record))
    made = release(tmp_path / "b", tmp_path / "r", "0.2.0", reviews=tmp_path / "reviews.json")
    assert made.manifest["duplicates"] == {}
    assert {row["dialogue_id"] for row in table(tmp_path / "r", "dialogues")} == {"003-seed", "007-seed", "017-seed"}
