"""Quality of a judge: every figure against a hand-derived one, and the whole through a scripted judge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.text import words
from empathy_eval.cli import main
from empathy_eval.design.contrasts import CELLS, FAR, NEAR, STANCE
from empathy_eval.design.dataset import column, read_manifest
from empathy_eval.design.rubrics import Criterion, Rubric, Scale, load_rubric
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.evaluation.shortcuts.shortcuts import WORDS_ALONE, audit
from empathy_eval.raters.agreement import Estimate
from empathy_eval.raters.judges.annotating import Annotating, AnnotationPlan, annotations_of, judge_of
from empathy_eval.raters.judges.annotations import Annotated, AnnotationFolder, JudgeComparison, NamedStrategy, Rating
from empathy_eval.raters.judges.judge_quality import (
    ComparedWith,
    CriterionQuality,
    JudgeQuality,
    judge_quality,
    quality_text,
    read_compared,
)
from empathy_eval.raters.review.sheets import text_hash

from tests.doubles.server import Behaviour, Server, running

SHARE, FIVE = Scale(0, 1, whole=False), Scale(1, 5, whole=True)
WARM = Criterion("warm", "How warm?", SHARE, {}, "high")
Values = Mapping[tuple[str, str, str], list[float]]


def rubric(*criteria: Criterion, kind: str = "rating") -> Rubric:
    return Rubric("mine", "Mine", "nobody", kind, "reply", criteria=criteria)


def folder(of: Rubric, cases: list[Annotated], teacher: str = "m", samples: int = 1, **summary: Any) -> AnnotationFolder:
    configuration = {
        "judge": {"kind": "openai", "model": teacher}, "rubric": of.name, "rubric_hash": of.hash, "samples_of_a_text": samples,
        "release": {"name": "demo", "version": "0.1.0", "seal": "s1-0"},
    }  # fmt: skip
    told = {"missing": 0, "unannotated_by_reason": {}, "usage": {}, **summary}
    return AnnotationFolder(Path(teacher), {"configuration": configuration, "rubric": asdict(of), "summary": told}, tuple(cases))


def rated(of: Rubric, values: Values, **more: Any) -> AnnotationFolder:
    """From the samples of (pair, variant, criterion)."""
    made: dict[str, list[Rating]] = {}
    for (pair, variant, criterion), samples in values.items():
        rows = (Rating(variant, criterion, number, value, "", "k") for number, value in enumerate(samples))
        made.setdefault(pair, []).extend(rows)
    cases = [Annotated(pair.partition("-t")[0], int(pair[-2:]), pair, "accepted", ratings=tuple(rows)) for pair, rows in made.items()]
    return folder(of, cases, samples=max(map(len, values.values())), **more)


def preferred(rows: list[tuple[str, str, str, str, str]], **more: Any) -> AnnotationFolder:
    """From (pair, first by name, second, winner, winner of the other order)."""
    made: dict[str, list[JudgeComparison]] = {}
    for pair, *rest in rows:
        made.setdefault(pair, []).append(JudgeComparison(rest[0], rest[1], 0, rest[2], rest[3], "", "", "k", "k"))
    cases = [Annotated(pair.partition("-t")[0], int(pair[-2:]), pair, "accepted", comparisons=tuple(some)) for pair, some in made.items()]
    return folder(rubric(Criterion("warmer", "Which?"), kind="preference"), cases, **more)


def only(worth: JudgeQuality) -> CriterionQuality:
    (one,) = worth.criteria
    return one


def value(measure: Estimate | None) -> float | None:
    assert measure is not None
    return None if measure.value is None else round(measure.value, 6)


def three_pairs(release: Path) -> list[str]:
    """Pairs with controls, of different dialogues."""
    found: dict[str, str] = {}
    for pair in column(release, "controls", "pair_id"):
        found.setdefault(pair.partition("-t")[0], pair)
    return sorted(found.values())[:3]


def test_alpha_over_samples_is_krippendorffs_and_null_with_one_sample(light: Path) -> None:
    """Of (0, 0), (1, 1), (0, 1): observed 2 / 6, expected 2 * 3 * 3 / 30, so alpha is 1 - (1 / 3) / (3 / 5) = 4 / 9."""
    one, two, three = three_pairs(light)
    texts = {(one, "apathetic", "warm"): [0.0, 0.0], (two, "apathetic", "warm"): [1.0, 1.0], (three, "reference", "warm"): [0.0, 1.0]}
    found = only(judge_quality(rated(rubric(WARM), texts), light)).with_itself
    assert (value(found), found.n) == (round(4 / 9, 6), 3) and found.low is not None
    # A single dialogue has no spread.
    alone = only(judge_quality(rated(rubric(WARM), {(one, name, "warm"): some for (_, name, _), some in texts.items()}), light)).with_itself
    assert alone.value is not None and alone.low is None
    # Any other scale is the same numbers stretched.
    stretched = {key: [1 + 4 * one for one in some] for key, some in texts.items()}
    low = Criterion("warm", "How warm?", FIVE, {}, "low")
    assert value(only(judge_quality(rated(rubric(low), stretched), light)).with_itself) == round(4 / 9, 6)
    single = only(judge_quality(rated(rubric(WARM), {key: some[:1] for key, some in texts.items()}), light)).with_itself
    assert (single.value, single.reason) == (None, "only one sample")


def test_judges_agree_by_their_means_over_samples(light: Path) -> None:
    one, two, three = three_pairs(light)
    places = [(one, "apathetic", "warm"), (two, "apathetic", "warm"), (three, "apathetic", "warm")]
    mine = rated(rubric(WARM), dict(zip(places, [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], strict=True)))
    # A text that only one of them rated changes nothing.
    theirs = dict(zip([*places, (one, "reference", "warm")], [[0.0], [1.0], [1.0], [0.5]], strict=True))
    beside = ComparedWith((rated(rubric(WARM), theirs, teacher="other"),))
    found = only(judge_quality(mine, light, beside)).with_judges
    assert found and (value(found), found.n) == (round(4 / 9, 6), 3) and "|beside:other|" in found.signature
    assert only(judge_quality(mine, light)).with_judges is None


def test_decisions_agree_with_the_sign_of_values_and_ties_are_half(light: Path) -> None:
    one, two, three = three_pairs(light)
    values = {
        (pair, variant, "warm"): [number] for pair in (one, two, three) for variant, number in (("apathetic", 0.2), ("empathetic", 0.7))
    }
    values[three, "empathetic", "warm"] = [0.2]
    rows = [
        (one, "apathetic", "empathetic", "empathetic", "empathetic"),
        (two, "apathetic", "empathetic", "apathetic", "apathetic"),
        (three, "apathetic", "empathetic", "empathetic", "empathetic"),
        (one, "empathetic", "reference", "empathetic", "empathetic"),  # the reference has no value
        (two, "apathetic", "empathetic", "empathetic", "apathetic"),  # not consistent
    ]
    beside = ComparedWith((preferred([*rows, (one, "apathetic", "empathetic", "empathetic", "empathetic")], teacher="p"),))
    found = only(judge_quality(rated(rubric(WARM), values), light, beside)).with_decisions["p, mine"]
    assert (value(found), found.n) == ((1 + 0 + 0.5 + 1) / 4, 4)
    low = Criterion("warm", "How cold?", SHARE, {}, "low")
    turned = only(judge_quality(rated(rubric(low), values), light, beside)).with_decisions["p, mine"]
    assert value(turned) == (0 + 1 + 0.5 + 0) / 4


def review(release: Path, given: list[tuple[str, str, int]], **more: Any) -> dict[str, Any]:
    texts = {name: dict(zip(column(release, "controls", "pair_id"), column(release, "controls", name), strict=True)) for name in CELLS}
    rows = [
        {"kind": "variant", "pair_id": pair, "variant": name, "text": text_hash(texts[name][pair])}
        | {"coherence": 1, "helpfulness": 1, "empathy": rating, **more}
        for pair, name, rating in given
    ]
    return {"judgements": [*rows, {"kind": "dialogue"}]}


def test_kappa_and_spearman_with_people_are_on_their_scale_with_halves_up(light: Path) -> None:
    """The judge's 1, 2, 5, 4 of 5 are 1, 1.5, 3, 2.5 of 3, so 1, 2, 3, 3; people's 1, 2, 3, 1.5 are 1, 2, 3, 2.

    Quadratic: observed 1 / 4; expected (6 + 2 + 2 * 6) / 16 = 5 / 4; kappa 0.8. Ranks 1, 2, 4, 3 and 1, 3, 4, 2: 1 - 6 * 2 / 60 = 0.8.
    """
    one, two, _ = three_pairs(light)
    places = [(one, "apathetic"), (one, "empathetic"), (two, "near_empathetic"), (two, "far_apathetic")]
    of = rubric(Criterion("empathy", "How much?", FIVE, {}, "high"), WARM)
    values = {(*place, "empathy"): [number] for place, number in zip(places, (1.0, 2.0, 5.0, 4.0), strict=True)}
    values |= {(one, "reference", "empathy"): [1.0], (one, "apathetic", "warm"): [0.0]}
    people = [(*place, rating) for place, rating in zip([*places, places[3]], (1, 2, 3, 1, 2), strict=True)]
    record = review(light, people)
    # A text that has changed since it was rated, and a rejected one, are none of these.
    changed = review(light, [(one, "near_empathetic", 1), (one, "apathetic", 3)], text="0" * 12)["judgements"]
    record["judgements"] += changed + review(light, [(two, "far_apathetic", 3)], attempt=0)["judgements"]
    empathy, warm = judge_quality(rated(of, values), light, ComparedWith((), record)).criteria
    assert {name: (value(one), one.n) for name, one in empathy.with_people.items()} == {"kappa": (0.8, 4), "spearman": (0.8, 4)}
    assert warm.with_people == {}
    # The judge's ranks 1.5, 1.5, 3, 4 and people's 1, 3, 4, 2: 1 over the root of 4.5 times 5.
    tied = rated(of, {**values, **{(*place, "empathy"): [number] for place, number in zip(places, (1.0, 1.0, 3.0, 5.0), strict=True)}})
    assert value(judge_quality(tied, light, ComparedWith((), record)).criteria[0].with_people["spearman"]) == round(1 / (4.5 * 5) ** 0.5, 6)
    nobody = judge_quality(rated(of, values), light, ComparedWith((), {"judgements": []})).criteria[0].with_people
    assert {(one.value, one.reason) for one in nobody.values()} == {(None, "no item in common")}


def test_flow_and_content_are_correlated_where_both_are_there(light: Path) -> None:
    """(0, 0.5, 1) with (0, 1, 0.5): 0.25 / 0.5."""
    pairs = three_pairs(light)
    of = rubric(*(Criterion(name, "?", SHARE, {}, "high") for name in ("flow", "content")))
    columns = {"flow": (0.0, 0.5, 1.0), "content": (0.0, 1.0, 0.5)}
    values = {(pair, "reference", name): [row[place]] for name, row in columns.items() for place, pair in enumerate(pairs)}
    found = judge_quality(rated(of, values), light).together
    assert found and (value(found), found.n) == (0.5, 3)
    flat = judge_quality(rated(of, values | {(pair, "reference", "flow"): [0.1] for pair in pairs}), light).together
    assert flat and (flat.value, flat.reason) == (None, "one of the two is the same for all items")
    assert judge_quality(rated(rubric(WARM), {(pairs[0], "reference", "warm"): [0.1]}), light).together is None


def test_the_grid_counts_values_of_all_samples(light: Path) -> None:
    one, two, _ = three_pairs(light)
    found = only(
        judge_quality(rated(rubric(WARM), {(one, "reference", "warm"): [0.1, 0.3], (two, "reference", "warm"): [0.35, 0.3]}), light)
    )
    assert (value(found.on_grid), value(found.distinct), found.texts) == (0.75, 3, 2)


def test_stance_is_judged_at_equal_closeness_with_ties_half(light: Path) -> None:
    one, two, three = three_pairs(light)
    values: dict[tuple[str, str, str], list[float]] = {}
    for pair, numbers in ((one, (0.9, 0.1, 0.9, 0.1)), (two, (0.5, 0.5, 0.2, 0.8)), (three, (0.6, 0.4, 0.7, None))):
        cells = zip((*NEAR, *FAR), numbers, strict=True)
        values |= {(pair, name, "warm"): [number] for name, number in cells if number is not None}
    found = only(judge_quality(rated(rubric(WARM), values), light)).stance["judge"]
    # Of the first both, of the second a tie and none, of the third the near one; its far one lacks a text.
    assert (value(found), found.n) == (round((1 + 1 + 0.5 + 0 + 1) / 5, 6), 5)
    low = Criterion("warm", "How cold?", SHARE, {}, "low")
    assert value(only(judge_quality(rated(rubric(low), values), light)).stance["judge"]) == round((0 + 0 + 0.5 + 1 + 0) / 5, 6)
    without = {key: some for key, some in values.items() if key[1] in ("apathetic", "empathetic")}
    assert only(judge_quality(rated(rubric(WARM), without), light)).stance == {}


def test_shortcuts_on_all_pairs_are_those_of_the_audit_and_else_of_the_very_same_pairs(light: Path) -> None:
    names = column(light, "controls", "pair_id")
    values = {(pair, name, "warm"): [0.5] for pair in names for name in CELLS}
    stance = only(judge_quality(rated(rubric(WARM), values), light)).stance
    expected = {one.name: one.accuracy for one in next(one for one in audit(light).contrasts if one.contrast == STANCE).shortcuts}
    for name in ("length", WORDS_ALONE):
        row = expected[name]
        found = stance[name]
        assert row and (found.value, found.low, found.high) == pytest.approx((row.value, row.low, row.high))
    assert value(stance["judge"]) == 0.5 and len(set(map(str, expected.values()))) > 1
    assert "shortcut:" in stance["length"].signature and "shortcut:" not in stance["judge"].signature
    texts = {name: dict(zip(names, column(light, "controls", name), strict=True)) for name in CELLS}
    pair = three_pairs(light)[0]
    gaps = [len(words(texts[kind][pair])) - len(words(texts[cold][pair])) for kind, cold in (NEAR, FAR)]
    longer = [1 if gap > 0 else 0.5 if gap == 0 else 0 for gap in gaps]
    some = only(judge_quality(rated(rubric(WARM), {key: one for key, one in values.items() if key[0] == pair}), light)).stance
    assert value(some["length"]) == sum(longer) / 2 and some["length"].reason == "no interval: all is of one dialogue"


def test_preferences_say_first_places_flips_and_who_wins(light: Path) -> None:
    one, two, three = three_pairs(light)
    rows = [
        (one, "apathetic", "near_empathetic", "near_empathetic", "near_empathetic"),  # A wins once
        (two, "apathetic", "near_empathetic", "apathetic", "near_empathetic"),  # A wins twice
        (three, "apathetic", "near_empathetic", "near_empathetic", "apathetic"),  # A never wins
        (one, "empathetic", "far_apathetic", "far_apathetic", "far_apathetic"),
        (two, "empathetic", "far_apathetic", "far_apathetic", "empathetic"),
        (three, "empathetic", "far_apathetic", "far_apathetic", "far_apathetic"),
    ]
    worth = judge_quality(preferred(rows), light)
    found = worth.preferences
    assert found and (value(found["first"]), value(found["flipped"])) == (round((1 + 2 + 0 + 1 + 0 + 1) / 12, 6), 3 / 6)
    assert {two: {name: value(one) for name, one in some.items()} for two, some in found["won"].items()} == {
        "apathetic - near_empathetic": {"apathetic": 0.0, "near_empathetic": round(1 / 3, 6), "neither": round(2 / 3, 6)},
        "empathetic - far_apathetic": {"empathetic": 0.0, "far_apathetic": round(2 / 3, 6), "neither": round(1 / 3, 6)},
    }
    # Near the kind one wins, and twice neither does; far it loses twice, and once neither does.
    assert value(only(worth).stance["judge"]) == round((1 + 0.5 + 0.5 + 0 + 0.5 + 0) / 6, 6)
    assert (only(worth).on_grid, only(worth).with_decisions) == (None, {})


def test_named_strategies_are_held_against_the_planned_ones(light: Path) -> None:
    taxonomy = load_taxonomy()
    short = {one.name: one.abbreviation for one in taxonomy.strategies}
    rows = {
        name: dict(zip(column(light, "pairs", "pair_id"), column(light, "pairs", name), strict=True))
        for name in ("strategy", "empathetic_strategy")
    }
    near, far = ({pair: short[one] for pair, one in some.items()} for some in rows.values())
    pairs = next([one, two] for one in near for two in near if near[one] != near[two] and far[one] != far[two])
    cases = []
    for pair, chance in zip(pairs, (0.5, 0.2), strict=True):
        ideal = {one.abbreviation: (1 - chance) / 14 for one in taxonomy.strategies} | {near[pair]: chance}
        said = {"reference": near[pairs[0]], "empathetic": far[pair], "far_apathetic": near[pair]}
        judged = tuple(NamedStrategy(name, 0, one, "k", ideal, "k") for name, one in said.items())
        cases.append(Annotated(pair.partition("-t")[0], 1, pair, "accepted", strategies=judged))
    of = rubric(kind="strategies")
    found = judge_quality(folder(of, cases), light).strategies
    assert found and value(found["ideal"]) == 0.35 and found["ideal"].n == 2
    accuracy = {name: value(one["accuracy"]) for name, one in found["named"].items()}
    assert accuracy == {"all": 0.5, "reference": 0.5, "empathetic": 1.0, "far_apathetic": 0.0}
    # Of the reference it always says the same: no better than chance. Of the empathetic text it is right throughout.
    assert (value(found["named"]["reference"]["kappa"]), value(found["named"]["empathetic"]["kappa"])) == (0.0, 1.0)


def test_what_is_unannotated_and_used_is_reported_and_every_figure_is_signed(light: Path) -> None:
    summary = {"missing": 2, "unannotated_by_reason": {"rating: criterion_missing": 3}, "usage": {"m": {"input_tokens": 7}}}
    one, *_ = three_pairs(light)
    made = rated(rubric(WARM), {(one, "apathetic", "warm"): [0.5], (one, "near_empathetic", "warm"): [0.6]}, **summary)
    told = judge_quality(made, light).to_json()
    assert (told["missing"], told["unannotated"], told["usage"]) == tuple(summary.values())
    json.dumps(told, allow_nan=False)
    (criterion,) = told["criteria"]
    for figure in (criterion["with_itself"], criterion["on_grid"], criterion["distinct"], *criterion["stance"].values()):
        items = figure["items"] or 2
        assert figure["signature"].startswith(f"teacher:m|rubric:mine|rubric_hash:{rubric(WARM).hash}|samples:1|n:{items}|")


def test_nothing_said_at_all_is_reported_without_figures(light: Path) -> None:
    for made in (folder(rubric(WARM), []), folder(rubric(kind="strategies"), []), preferred([])):
        worth = judge_quality(made, light)
        json.dumps(worth.to_json(), allow_nan=False)
        assert "nan" not in quality_text(worth)


def config_of(release: Path, of: Rubric) -> Annotating:
    return annotations_of(release, of, judge_of("m", "http://localhost:1/v1"), AnnotationPlan(1)).config


class Scripted(Server):
    """Rates by variant, which it finds by the text: near ones alike, far ones apart. Prefers the empathetic text, and else the first."""

    texts: Mapping[str, str]
    values: Mapping[str, float]

    def good(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        system, asked = body["messages"][0]["content"], body["messages"][-1]["content"]
        found = sorted((asked.rindex(text), variant) for text, variant in self.texts.items() if text in asked)
        if '"better"' in system:
            order = [variant for _, variant in found][-2:]
            return {"analysis": "So.", "better": "AB"[order.index("empathetic")] if "empathetic" in order else "A"}
        variant = found[-1][1]
        names = [one.name for one in load_rubric("teacher").criteria]
        return {"analysis": "So.", "ratings": [{"criterion": one, "value": self.values[variant]} for one in names]}


@pytest.fixture
def scripted(light: Path) -> Scripted:
    server = Scripted(Behaviour())
    server.texts = {text: name for name in ("reference", *CELLS) for text in column(light, "controls", name)}
    server.values = {"reference": 0.7, "near_empathetic": 0.8, "apathetic": 0.8, "empathetic": 0.9, "far_apathetic": 0.15}
    return server


@pytest.mark.e2e
def test_annotate_prints_the_figures_that_its_script_sets(
    light: Path, scripted: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def annotate(name: str, *more: str) -> str:
        arguments = ("annotate", str(light), "--out", str(tmp_path / name), "--rubric", name, "--model", "m", "--turns", "9")
        with running(server=scripted) as server:
            assert main([*arguments, "--base-url", server.url, *more]) == 0
        return capsys.readouterr().out

    judged = json.loads(annotate("warmer", "--json"))["worth"]
    won = judged["preferences"]["won"]
    assert won["apathetic - empathetic"]["empathetic"]["value"] == 1 and won["apathetic - near_empathetic"]["neither"]["value"] == 1
    flips = [some["neither"]["items"] for two, some in won.items() if "empathetic" not in two.split(" - ")]
    compared = sum(some["neither"]["items"] for some in won.values())
    assert judged["preferences"]["flipped"]["value"] == round(sum(flips) / compared, 6)

    beside = ("--beside", str(tmp_path / "warmer"))
    worth = json.loads(annotate("teacher", "--json", *beside))["worth"]
    assert worth["beside"] == ["m, warmer"] and worth["unannotated"] == {} and worth["usage"]["m"]["requests"] > 0
    for one in worth["criteria"]:
        assert one["stance"]["judge"]["value"] == 0.75, "ties near, right far"
        # The empathetic text has the highest value, and wins whatever is decided at all.
        assert one["with_decisions"]["m, warmer"]["value"] == 1
        assert one["distinct"]["value"] == 4 and one["with_itself"]["value"] is None
        assert 0.7 < one["on_grid"]["value"] < 1
    assert worth["together"]["value"] == pytest.approx(1)

    # What is only a part, or handed out, has no figures yet.
    assert "worth" not in annotate("teacher", *beside, "--slice", "1/2")
    assert "worth" not in annotate("lend-an-ear", "--requests-to", str(tmp_path / "ask.jsonl"))
    table = annotate("teacher", *beside).splitlines()
    headings = next(line for line in table if line.startswith(" ")).split()
    assert headings == ["texts", "decisions", "on", "0.1", "values", "right", "length", "words"]
    (row,) = [line.split() for line in table if line.startswith("safety ")]
    assert row[2] == "1.00" and "0.75" in row


@pytest.mark.e2e
def test_what_does_not_go_beside_is_refused_before_anything_is_asked(
    light: Path, scripted: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def annotate(rubric: str, out: str, *more: str) -> int:
        with running(server=scripted) as server:
            made = ("--out", str(tmp_path / out), "--rubric", rubric, "--model", "m", "--turns", "1", "--base-url", server.url)
            return main(["annotate", str(light), *made, *more])

    assert annotate("teacher", "t") == 0 and annotate("warmer", "w") == 0
    asked = scripted.seen.total()
    capsys.readouterr()
    ratings, preferences = str(tmp_path / "t"), str(tmp_path / "w")
    (tmp_path / "reviews.json").write_text("{")
    wrong = ("--beside", str(tmp_path / "none"), "--beside", ratings, "--reviews", str(tmp_path / "reviews.json"))
    assert annotate("warmer", "w", *wrong, "--beside", preferences) == 2
    said = capsys.readouterr().err
    told = (
        "holds no finished annotations",
        f'{ratings}: is by "teacher", but these are by the current text of "warmer"',
        f"{preferences}: is --out, or named twice",
        'has no ratings by a criterion of "warmer"',
        "reviews.json: is not JSON",
    )
    assert [part for part in told if part not in said] == []
    assert annotate("strategies", "s", "--beside", ratings) == 2 and "compared with the plan alone" in capsys.readouterr().err
    assert scripted.seen.total() == asked and not (tmp_path / "s").exists()


def test_annotations_of_another_release_do_not_go_beside(light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = folder(load_rubric("teacher"), [])
    monkeypatch.setattr("empathy_eval.raters.judges.judge_quality.read_annotations", lambda path: other)
    with pytest.raises(InputError, match=r"is of another release, demo 0\.1\.0"):
        read_compared(config_of(light, load_rubric("teacher")), tmp_path, [tmp_path / "b"], None)
    other.header["configuration"]["release"]["seal"] = read_manifest(light)["seal"]
    assert read_compared(config_of(light, load_rubric("teacher")), tmp_path, [tmp_path / "b"], None).folders == (other,)
