"""Systems compared: every figure against values by hand, what is greyed, what is concluded, and what is refused."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import empathy_eval as ee
import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.results import correct_p_values
from empathy_eval.metrics.registry import find
from empathy_eval.raters.judges.annotations import read_annotations
from empathy_eval.raters.systems.comparison import Sources, compare_systems, conclusions
from empathy_eval.raters.systems.figures import FigureColumn, join_folders
from empathy_eval.raters.systems.replies import Replied, read_replied
from empathy_eval.raters.systems.results import (
    FigureRow,
    Grid,
    MetricWorth,
    SystemComparison,
    SystemDifference,
    SystemMean,
    paired_differences,
)
from empathy_eval.reports.systems_page import page
from empathy_eval.statistics.estimate import Clusters, Estimate, bradley_terry, connected

from tests.doubles.systems import BOTH, COLD, KIND, Actor, Knowing

QUICK: dict[str, Any] = {"split": "all", "toxicity": False}
CHANCE = ResamplingSettings(200, 199, 0)


@pytest.fixture(scope="module")
def judged(light: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with replies of three systems, all that a judge says of them, and the baselines."""
    folder = tmp_path_factory.mktemp("judged")
    systems = {name: Actor(name, light) for name in (KIND, COLD, BOTH)}
    ee.respond(light, folder / "r", systems=systems, contexts=None, **QUICK)
    ee.annotate(folder / "r", folder / "rated", rubric="heart", model=Knowing(light), turns=None)
    ee.annotate(folder / "r", folder / "preferred", rubric="warmer", model=Knowing(light), turns=None)
    return folder


def found_in(judged: Path, **more: Any) -> Any:
    sources = Sources([judged / "rated", judged / "preferred"], chance=CHANCE, **more)
    return compare_systems([read_replied(judged / "r")], sources)


def values_of(folder: Path, criterion: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for case in read_annotations(folder).cases:
        for one in case.ratings:
            if one.criterion == criterion:
                found.setdefault(one.variant or "", {})[case.pair_id or ""] = one.value
    return found


def test_means_and_differences_are_those_of_the_ratings(judged: Path) -> None:
    found, by_hand = found_in(judged), values_of(judged / "rated", "resonance")
    row = next(one for one in found.figures if one.name == "knowing/heart: resonance")
    means = {name: sum(some.values()) / len(some) for name, some in by_hand.items()}
    assert means[KIND] == 5 and means[COLD] == 1 and 1 < means[BOTH] < 5
    assert {cell.system: cell.mean.value for cell in row.cells} == pytest.approx(means)
    gaps = {(gap.system, gap.other): gap for gap in found.gaps if gap.figure == row.name}
    for two in combinations((KIND, COLD, BOTH), 2):
        assert gaps[two].difference.value == pytest.approx(means[two[0]] - means[two[1]])
        assert gaps[two].contexts == len(by_hand[KIND]) and gaps[two].left_out == 0


def test_win_rates_and_scores_are_those_of_the_games(judged: Path) -> None:
    found = found_in(judged)
    games = [one for case in read_annotations(judged / "preferred").cases for one in case.comparisons]
    won = np.zeros((1, 3, 3))
    place = {name: number for number, name in enumerate(found.systems)}
    for one in games:
        won[0, place[one.variant_1], place[one.variant_2]] += one.share_of_first
        won[0, place[one.variant_2], place[one.variant_1]] += 1 - one.share_of_first
    # Alike texts are a tie: the judge takes the first of them in either order.
    assert won[0, place[KIND], place[COLD]] == len(games) / 3 and won[0, place[COLD], place[KIND]] == 0
    row = next(one for one in found.figures if one.kind == "win rate")
    rates = won[0].sum(axis=1) / (won[0] + won[0].T).sum(axis=1)
    assert [cell.mean.value for cell in row.cells] == pytest.approx(rates.tolist())
    scores = [one.score.value for one in found.strengths]
    assert (
        scores == pytest.approx(bradley_terry(won)[0].tolist(), abs=1e-6)
        and scores[place[KIND]] > scores[place[BOTH]] > scores[place[COLD]]
    )
    assert all(one.score.low < one.score.value < one.score.high for one in found.strengths)


def test_a_resample_in_which_two_systems_never_met_has_finite_scores() -> None:
    met = np.ones((3, 3), dtype=bool) & ~np.eye(3, dtype=bool)
    # Only the first and the second were drawn: the third has its half wins alone, against each of them.
    won = np.array([[[0.0, 3.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    with np.errstate(all="raise"):
        (scores,) = bradley_terry(won, met)
        (none,) = bradley_terry(np.zeros((1, 3, 3)), met)
    assert scores[0] > scores[2] > scores[1] and abs(scores).max() < 3 and none.tolist() == pytest.approx([0, 0, 0])


def test_bradley_terry_is_the_log_odds_of_two_and_wins_as_often_as_it_says() -> None:
    two = bradley_terry(np.array([[[0.0, 7.0], [2.0, 0.0]]]))[0]
    assert two[0] - two[1] == pytest.approx(math.log(7.5 / 2.5)) and two.sum() == pytest.approx(0)
    won = np.array([[0.0, 5.0, 8.0], [3.0, 0.0, 4.5], [1.0, 2.5, 0.0]])
    score = bradley_terry(won[None])[0]
    games = won + won.T
    expected = (games + (games > 0)) / (1 + np.exp(score[None, :] - score[:, None]))
    assert expected.sum(axis=1) == pytest.approx((won + 0.5 * (games > 0)).sum(axis=1), abs=1e-6)
    assert connected(games > 0) and not connected(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool))


def test_a_mean_at_equal_length_takes_the_slope_within_contexts_away() -> None:
    # Within each context a word more is worth 0.5; the second system writes 4 words more and is 1 better beside that.
    words = np.array([[10.0, 14.0], [20.0, 24.0], [12.0, np.nan]])
    clusters = Clusters.of(["001-00001", "001-00002", "002-00001"], [1, 1, 2])
    values = np.array([[3.0, 6.0], [5.0, 8.0], [4.0, np.nan]])
    means, equal, slope = Grid(values, words, clusters).estimates(CHANCE)
    # xy / xx = (2 * 1.5 + 2 * 1.5) * 2 / (4 * 2 * 2) = 0.75 a word; all words have the mean 16.
    assert [one.value for one in means if one] == pytest.approx([4.0, 7.0])
    assert slope and slope.value == pytest.approx(7.5)
    assert [one.value for one in equal if one] == pytest.approx([4 - 0.75 * (14 - 16), 7 - 0.75 * (19 - 16)])


def test_differences_that_are_always_there_are_found_and_noise_is_not(judged: Path) -> None:
    field = join_folders([read_replied(judged / "r")])
    pairs = [one.pair_id for one in field.contexts]
    values: Mapping[str, Mapping[str, float]] = {
        KIND: dict.fromkeys(pairs, 2.0), COLD: dict.fromkeys(pairs, 1.0),
        BOTH: {pair: 1.0 + (number % 2) * 2 for number, pair in enumerate(pairs)},
    }  # fmt: skip
    gaps = correct_p_values(paired_differences(FigureColumn("x", "judge", True, values, "x"), field, CHANCE))
    by_two = {(gap.system, gap.other): gap.difference for gap in gaps}
    first = by_two[KIND, COLD]
    # Three dialogues can be exchanged in 8 ways, two of which are as far from 0 and count half.
    assert first and first.value == 1 and (first.low, first.high) == (1, 1) and first.p == pytest.approx(1 / 8, abs=0.03)
    assert (
        first.p_corrected
        and first.p
        and first.p_corrected == pytest.approx(min(1, 3 * min(one.p for one in by_two.values() if one and one.p)), abs=0.3)
    )


def test_a_metric_below_the_shortcut_line_is_greyed_with_the_reason(judged: Path) -> None:
    worth = {"VADER": MetricWorth(Estimate(0.5, 0.4, 0.6), 0.7, "below", "below it (words alone; contrast: stance)")}
    found = found_in(judged, metrics=find(["vader", "length"], {}), worth=worth)
    html = page(found)
    assert "VADER is below the shortcut line on this release" in " ".join(found.limits)
    assert '<th scope="col" class="greyed"><bdi>VADER</bdi>' in html and "below it (words alone; contrast: stance)" in html
    assert '<th scope="col" class="greyed"><bdi>Length' not in html and "was not measured: name the release with --release" in html


def test_what_is_concluded_is_no_more_than_the_figures_say(judged: Path) -> None:
    found = found_in(judged)
    # Three dialogues are too few for any p below 0.05.
    assert "no system is shown to be better than another: kind is highest" in found.conclusions[0]
    assert any("No people rated these replies" in one for one in found.limits)
    # Of two alike replies either wins half: of three systems the best has 0.75 or 1, the worst 0 or 0.25.
    assert {part.by for part in found.parts} == {"scenario", "phase", "register"}
    assert all(max(one.values.values()) - min(one.values.values()) == 0.75 for one in found.examples)
    bare = compare_systems([read_replied(judged / "r")], Sources(chance=CHANCE))
    assert bare.conclusions == ("Nothing can be concluded on empathy: no person, no judge and no metric has rated these replies.",)


def test_peoples_ratings_stand_in_the_same_table(judged: Path, tmp_path: Path) -> None:
    replied = read_replied(judged / "r")
    lines = ["item,rater,criterion,rating"]
    for one in replied.contexts[:4]:
        lines += [f"{one.pair_id}::{name},{rater},empathy,{value}" for name, value in ((KIND, 3), (COLD, 1)) for rater in ("a", "b")]
    table = tmp_path / "ratings.csv"
    table.write_text("\n".join([*lines, "999-seed-t01::kind,a,empathy,2"]) + "\n")
    found = compare_systems([replied], Sources([judged / "rated"], [table], chance=CHANCE))
    assert found.main and found.main.name == "people: empathy"
    assert {cell.system: cell.mean and cell.mean.value for cell in found.main.cells} == {KIND: 3.0, COLD: 1.0, BOTH: None}
    table.write_text("item,rater,criterion,rating\nelsewhere::kind,a,empathy,2\n")
    with pytest.raises(InputError, match="rates none of these replies"):
        compare_systems([replied], Sources([], [table], chance=CHANCE))


def test_folders_are_compared_over_what_they_share_and_two_replies_of_one_system_are_refused(
    light: Path, judged: Path, tmp_path: Path
) -> None:
    ee.respond(light, tmp_path / "more", systems={"new": lambda messages: "I am with you in this."}, contexts=4, **QUICK)
    both = compare_systems([read_replied(judged / "r"), read_replied(tmp_path / "more")], Sources(chance=CHANCE))
    gap = next(one for one in both.gaps if (one.system, one.other, one.figure) == (KIND, "new", "words"))
    assert gap.contexts == 4 and gap.left_out == both.contexts - 4
    ee.respond(light, tmp_path / "other", systems={KIND: lambda messages: "Another reply of the same name."}, contexts=4, **QUICK)
    with pytest.raises(InputError, match='"kind" replies otherwise than in another folder'):
        compare_systems([read_replied(judged / "r"), read_replied(tmp_path / "other")], Sources(chance=CHANCE))
    foreign = read_replied(tmp_path / "other")
    made = {**foreign.configuration, "release": {**foreign.configuration["release"], "seal": "s1-" + "0" * 64}}
    with pytest.raises(InputError, match="replies to another release than"):
        compare_systems(
            [read_replied(judged / "r"), Replied(foreign.folder, {**foreign.header, "configuration": made}, (), ())], Sources(chance=CHANCE)
        )


@pytest.mark.e2e
def test_the_command_prints_every_form_and_writes_a_page_that_is_the_same_again(
    light: Path, judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", str(judged / "r"), "--annotations", str(judged / "rated"), "--metric", "vader", "--no-cache"]
    texts = []
    for form in ([], ["--json"], ["--csv"], ["--latex"], ["--markdown"]):
        assert main([*command, *form]) == 0
        texts.append(capsys.readouterr().out)
    assert json.loads(texts[1])["systems"] == [KIND, COLD, BOTH] and texts[2].startswith("release,version,seal")
    assert r"\begin{tabular}" in texts[3] and "| kind" in texts[4] and "mean" in texts[0]
    for number in (1, 2):
        assert main([*command, "--release", str(light), "--page", str(tmp_path / f"{number}.html")]) == 0
    pages = [(tmp_path / f"{number}.html").read_bytes() for number in (1, 2)]
    assert pages[0] == pages[1] and b"Beside the shortcut line" in pages[0] and str(tmp_path).encode() not in pages[0]
    copy = tmp_path / "release"
    shutil.copytree(light, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "seal": "s1-" + "0" * 64}))
    assert main([*command, "--release", str(copy)]) == 2
    assert "name the release that was replied to, unchanged" in capsys.readouterr().err


def test_replies_are_scored_with_annotations_of_them_and_sent_out_to_people(light: Path, judged: Path, tmp_path: Path) -> None:
    found = ee.score(judged / "r", ["length"], annotations=[judged / "rated"], cache=False)
    assert isinstance(found, ee.CustomTextResults)
    assert found.headline["knowing/heart: resonance", KIND].value == 5 and found.headline["knowing/heart: resonance", COLD].value == 1
    ee.review_export(light, tmp_path / "pack", replies=judged / "r", raters=3, per_item=1, pairs=1, dialogues=0)
    key = (tmp_path / "pack" / "key.json").read_text()
    assert all(f'"{name}"' in key for name in (KIND, COLD, BOTH))


def means_of(found: SystemComparison) -> dict[str, dict[str, float | None]]:
    return {row.name: {cell.system: cell.mean.value if cell.mean else None for cell in row.cells} for row in found.figures}


def test_words_checks_metrics_and_parts_are_those_of_the_texts(light: Path, tmp_path: Path) -> None:
    manifest = json.loads((light / "manifest.json").read_text())
    lines = {"model": "As an AI, I cannot help with that.", "copy": f"empathy-eval canary GUID {manifest['canary']}"}
    functions = {name: (lambda messages, line=line: line) for name, line in lines.items()}
    ee.respond(light, tmp_path / "r", systems={KIND: Actor(KIND, light), BOTH: Actor(BOTH, light), **functions}, split="all", contexts=None)
    ee.annotate(tmp_path / "r", tmp_path / "rated", rubric="heart", model=Knowing(light), turns=None)
    replied = read_replied(tmp_path / "r")
    vader = find(["vader"], {})
    found = compare_systems([replied], Sources([tmp_path / "rated"], metrics=vader, chance=CHANCE))
    means, limit = means_of(found), manifest["configuration"]["checks"]["toxicity"]["at_most"]
    rows = [json.loads(line) for line in (tmp_path / "r" / "outcomes.jsonl").read_text().splitlines()]
    for name, texts in replied.texts.items():
        toxicity = [row["checks"]["toxicity"] for row in rows if row["system"] == name]
        words = [len(re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)) for text in texts.values()]
        assert means["words"][name] == pytest.approx(fmean(words))
        assert means["toxicity"][name] == pytest.approx(fmean(toxicity), abs=1e-6)
        assert means.get("toxic", {}).get(name, 0.0) == fmean(value > limit for value in toxicity)
        assert (means["refusal"][name], means["canary"][name]) == (float(name == "model"), float(name == "copy"))
        scores = [vader.metrics[0].score(text) for text in texts.values()]  # type: ignore[attr-defined]
        assert means["VADER"][name] == pytest.approx(fmean(scores), abs=1e-6)
    by_hand = values_of(tmp_path / "rated", "resonance")
    for part in (part for part in found.parts if part.figure == "knowing/heart: resonance"):
        pairs = [one.pair_id for one in replied.contexts if getattr(one, part.by) == part.group]
        assert part.contexts == len(pairs)
        assert part.mean and part.mean.value == pytest.approx(fmean(by_hand[part.system][pair] for pair in pairs), abs=1e-6)


def test_diversity_is_the_share_of_distinct_n_grams_over_as_many_words(light: Path, tmp_path: Path) -> None:
    functions = {"varied": lambda messages: "one two three four", "flat": lambda messages: "one one one one"}
    ee.respond(light, tmp_path / "r", systems=functions, contexts=5, **QUICK)
    replied = read_replied(tmp_path / "r")
    found = compare_systems([replied], Sources(chance=CHANCE))
    # As many replies as remain without the dialogue of the most contexts; four words each, three of which have one after them.
    replies = 5 - max(Counter(one.dialogue_id for one in replied.contexts).values())
    singles, doubles = found.diversity.values()
    assert [f"over {4 * replies} words" in name for name in found.diversity] == [True, True]
    assert singles == pytest.approx({"varied": 4 / (4 * replies), "flat": 1 / (4 * replies)}, abs=1e-6)
    assert doubles == pytest.approx({"varied": 3 / (3 * replies), "flat": 1 / (3 * replies)}, abs=1e-6)


def test_an_interval_is_that_of_students_distribution_over_dialogues() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(3, 1, (60, 1))
    clusters = Clusters.of([f"001-{number:05d}" for number in range(60)], [1] * 60)
    (mean,), _, slope = Grid(values, np.ones((60, 1)), clusters).estimates(ResamplingSettings(4000, 99, 0))
    # The standard error of a mean and the quantile of Student's distribution at 59 degrees of freedom, 2.001.
    half = 2.001 * values.std(ddof=1) / math.sqrt(60)
    assert mean and mean.value == pytest.approx(values.mean(), abs=1e-6) and slope is None
    assert (mean.low, mean.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.03 * half)


def compared_by_hand(gaps: Mapping[tuple[str, str], float], means: Mapping[str, float], equal: Mapping[str, float]) -> SystemComparison:
    """A comparison by one judge, with means, means at equal length, and the corrected p-value of each two systems."""
    cells = tuple(SystemMean(name, 9, Estimate(value, value, value), Estimate(equal[name])) for name, value in means.items())
    row = FigureRow("judge: warmth", "judge", True, cells, None, None, "")
    differences = tuple(
        SystemDifference(row.name, *two, 9, 0, Estimate(means[two[0]] - means[two[1]], p=p, p_corrected=p), "") for two, p in gaps.items()
    )
    return SystemComparison(tuple(means), (), 9, (row,), differences, (), (), {}, ())


@pytest.mark.parametrize(
    ("p_values", "equal", "sentences"),
    [
        ((0.01, 0.02), (4, 2, 1), ["a is better than b and c; each difference is significant", "a stays first"]),
        ((0.01, 0.20), (4, 2, 1), ["a is better than b, but not shown to be better than c", "a stays first"]),
        ((0.30, 0.20), (2, 4, 1), ["no system is shown to be better than another: a is highest", "At equal length b is first"]),
    ],
)
def test_a_conclusion_names_the_best_system_and_whom_it_is_shown_to_be_better_than(
    p_values: tuple[float, float], equal: tuple[float, ...], sentences: list[str]
) -> None:
    gaps = {("a", "b"): p_values[0], ("a", "c"): p_values[1], ("b", "c"): 0.001}
    comparison = compared_by_hand(gaps, {"a": 5.0, "b": 3.0, "c": 2.0}, dict(zip("abc", equal, strict=True)))
    said = list(conclusions(comparison))
    assert len(said) == 2 and all(sentence in line for sentence, line in zip(sentences, said, strict=True))
