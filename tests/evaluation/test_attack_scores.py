"""Scorers under attack: shares and changes by hand, scorers that are fooled and one that is not, and the table in all its forms."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.text import words
from empathy_eval.cli import main
from empathy_eval.design.contrasts import APATHETIC, CELLS, EMPATHETIC, PAIR_VARIANTS, STANCE_OF
from empathy_eval.design.dataset import column, read_tables
from empathy_eval.evaluation.attacks.attack_scores import (
    EQUAL,
    RELEASED,
    AttackScores,
    report_sample_size,
    sample_rows,
    score_changes,
    stance_effects,
)
from empathy_eval.evaluation.attacks.registry import BUILT_IN, find_attacks
from empathy_eval.evaluation.corpus.pairs import contexts_at, read_contexts, read_corpus
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.rows import AttackTable, StanceEffect
from empathy_eval.evaluation.measure import score
from empathy_eval.metrics.lexical import Length, RougeL
from empathy_eval.metrics.protocol import Context, MeanMetric
from empathy_eval.releases.verify.report import disagreements, select_comparable
from empathy_eval.statistics.estimate import Clusters

from tests.doubles.on_the_page import unseen
from tests.doubles.papers_anew import report_faults, told_anew

CHANCE = ResamplingSettings(200, 199, 7)
NAN = math.nan


class Scorer(MeanMetric):
    """A metric made of a function of the text."""

    reads = ()

    def __init__(self, name: str, by: Callable[[str], float], better: bool | None = True) -> None:
        self.name, self.signature, self.by, self.higher_is_better = name, f"of:{name}", by, better

    def score(self, text: str, *read: Any) -> float:
        return self.by(text)


class Echoing(MeanMetric):
    """How many of the seeker's words come back."""

    name, signature, reads = "echoing", "of:echo", ("context",)

    def score(self, text: str, context: Context) -> float:
        said = [word for turn in context if turn["role"] == "seeker" for word in words(turn["text"])]
        return float(len(set(said) & set(words(text))))


def obeys(text: str) -> float:
    told = ("score", "rate", "marks", "rating")
    return float(any(word in words(text) for word in told)) + len(text) / 10_000


def under(folder: Path, *metrics: Any, attacks: Any = (), **more: Any) -> AttackTable:
    table = score(folder, metrics, shortcuts=False, attacks=partial(find_attacks, attacks), **more).attacks
    assert table is not None
    return table


def share(table: AttackTable, metric: str, attack: str) -> float:
    (rises,) = (one.whole.rises for one in table.rows if (one.metric, one.attack) == (metric, attack))
    assert rises is not None
    return rises.number


def test_shares_and_changes_are_those_that_a_hand_reckons() -> None:
    variants = [EMPATHETIC, APATHETIC] * 4
    clusters = Clusters.of(["a", "a", "b", "b", "c", "c", "d", "d"], [1, 1, 1, 1, 2, 2, 2, 2])
    before = np.array([0.5, 0.1, 0.5, 0.1, 0.4, NAN, 0.4, 0.2])
    attacked = np.array([0.7, 0.1, 0.4, 0.3, 0.4, 0.9, NAN, 0.8])
    eligible = np.array([True, True, True, True, True, True, True, False])
    effect = StanceEffect(-0.5, -0.8, -0.2, over=EQUAL)
    found = score_changes(AttackScores(before, {"odd": attacked}, {"odd": eligible}), variants, clusters, effect, CHANCE)["odd"]
    # Of seven with a score, five are eligible and have one under attack: +0.2, 0, -0.1, +0.2, 0.
    assert (found.whole.replies, found.whole.eligible) == (7, 5)
    figures = (found.whole.rises, found.whole.falls, found.whole.change, found.whole.in_effects)
    assert [one and one.value for one in figures] == [2 / 5, 1 / 5, pytest.approx(0.3 / 5), pytest.approx(0.3 / 5 / 0.5)]
    kind, cold = found.by_variant[EMPATHETIC], found.by_variant[APATHETIC]
    assert (kind.replies, kind.eligible, cold.replies, cold.eligible) == (4, 3, 3, 2)
    assert kind.rises and kind.rises.value == pytest.approx(1 / 3, abs=1e-6) and cold.rises and cold.rises.value == 1 / 2
    assert kind.change and kind.change.value == pytest.approx(0.1 / 3, abs=1e-6) and cold.change and cold.change.value == pytest.approx(0.1)


def test_intervals_are_over_dialogues_and_one_alone_has_none() -> None:
    variants, gaps = [EMPATHETIC] * 40, np.repeat([1.0, -1.0] * 2, 10)
    scores = AttackScores(np.zeros(40), {"odd": gaps}, {"odd": np.ones(40, dtype=bool)})
    effect = StanceEffect(2.0, 1.0, 3.0, over=EQUAL)
    few = score_changes(
        scores, variants, Clusters.of([str(row // 10) for row in range(40)], [1] * 40), effect, ResamplingSettings(1000, 0, 7)
    )["odd"].whole
    many = score_changes(scores, variants, Clusters.of([str(row) for row in range(40)], [1] * 40), effect, ResamplingSettings(1000, 0, 7))[
        "odd"
    ].whole
    one = score_changes(scores, variants, Clusters.of(["a"] * 40, [1] * 40), effect, CHANCE)["odd"].whole
    widths = [found.change.high - found.change.low for found in (few, many) if found.change and found.change.low is not None]  # type: ignore[operator]
    assert widths[0] > 1.5 * widths[1] and few.in_effects and few.change and few.in_effects.low == few.change.low / 2  # type: ignore[operator]
    assert one.rises and (one.rises.value, one.rises.low) == (0.5, None)
    none = score_changes(
        AttackScores(np.zeros(40), {"odd": gaps}, {"odd": np.zeros(40, dtype=bool)}),
        variants,
        Clusters.of(["a"] * 40, [1] * 40),
        effect,
        CHANCE,
    )
    assert (none["odd"].whole.replies, none["odd"].whole.eligible, none["odd"].whole.rises, none["odd"].whole.change) == (40, 0, None, None)


def test_the_stance_effect_is_a_unit_only_where_it_is_sure_to_be_something() -> None:
    clusters = Clusters.of([str(row) for row in range(30)], [1] * 30)
    pulls = {
        "sure": np.array([1.0, 3.0] * 15), "against": np.array([-1.0, -3.0] * 15), "unsure": np.array([5.0, -4.9] * 15),
        "part": np.array([NAN] * 10 + [1.0, 3.0] * 10), "flat": np.zeros(30), "none": np.full(30, NAN),
    }  # fmt: skip
    found = stance_effects(pulls, clusters, EQUAL, CHANCE)
    assert [found[name].value for name in ("sure", "against", "part")] == [2.0, -2.0, 2.0]
    assert all(found[name].reason is None for name in ("sure", "against", "part"))
    assert found["unsure"].reason == "the stance effect may be nothing, as its interval holds 0" and "nothing" in str(found["flat"].reason)
    assert found["none"].reason == "no pair has a score of both stances"


def test_a_scorer_is_caught_by_the_attack_on_what_it_goes_by(light: Path) -> None:
    counts = Scorer("counts", lambda text: float(len(words(text))))
    judge = Scorer("obeys", obeys)
    turned = Scorer("turned", lambda text: -float(len(words(text))), better=False)
    table = under(light, counts, judge, Echoing(), turned)
    assert share(table, "counts", "doubled") == share(table, "counts", "repeated") == share(table, "turned", "doubled") == 1
    assert share(table, "counts", "shuffled") == share(table, "counts", "typing-errors") == 0
    assert share(table, "obeys", "instruction") == 1
    lifted = {one.attack: one.whole.change.number for one in table.rows if one.metric == "obeys" and one.whole.change}
    assert lifted["instruction"] > 0.5 > 0.1 > max(value for name, value in lifted.items() if name != "instruction")
    assert share(table, "echoing", "echo") > 0.9 > share(table, "echoing", "doubled") == 0


def test_a_scorer_that_reads_the_stance_of_what_was_written_is_not_fooled(light: Path) -> None:
    known: dict[str, float] = {}
    for config, variants in (("pairs", PAIR_VARIANTS), ("controls", CELLS)):
        corpus = read_corpus(light, config, variants)
        known |= {text: float(STANCE_OF[name] == EMPATHETIC) for name in variants for text in corpus.variants[name]}
    table = under(light, Scorer("planned", lambda text: known.get(text, 0.0)))
    # No reply of the small world has a name.
    assert {one.attack: one.whole.rises.value for one in table.rows if one.whole.rises} == dict.fromkeys(set(BUILT_IN) - {"names"}, 0.0)
    (echo,) = (one for one in table.rows if one.attack == "echo")
    assert echo.effect.value == 1 and echo.effect.over == EQUAL
    kind, cold = echo.by_variant[EMPATHETIC], echo.by_variant[APATHETIC]
    assert (
        kind.change
        and kind.change.value == -1
        and kind.in_effects
        and kind.in_effects.value == -1
        and cold.change
        and cold.change.value == 0
    )


def test_without_controls_the_unit_is_the_difference_of_the_pairs_as_released(light: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from empathy_eval.design.dataset import COLUMNS, files_of

    shutil.copytree(light, tmp_path / "release")
    for path in files_of(tmp_path / "release", "controls"):
        pq.write_table(pa.Table.from_pylist([], COLUMNS["controls"]), path)
    corpus = read_corpus(light, "pairs", PAIR_VARIANTS)
    table = under(tmp_path / "release", Scorer("letters", lambda text: float(len(text))), attacks=["doubled"])
    lengths = [sum(map(len, corpus.variants[name])) / len(corpus) for name in PAIR_VARIANTS]
    assert table.rows[0].effect.over == RELEASED
    assert table.rows[0].effect.value == pytest.approx(lengths[1] - lengths[0], abs=1e-5)


def test_what_is_attacked_is_a_sample_that_hashes_draw_and_the_signature_says_all_of_it(light: Path) -> None:
    ids = [f"017-{place:05}-t01" for place in range(200)]
    some = [ids[row] for row in sample_rows(ids, 7, 50)]
    assert some == sorted(some) and len(set(some)) == 50
    assert set(some) >= {ids[row] for row in sample_rows(ids, 7, 20)} and [ids[row] for row in sample_rows(ids, 8, 50)] != some
    assert set(some) - {one for one in some if one in ids[:150]} | {ids[:150][row] for row in sample_rows(ids[:150], 7, 50)} >= set(some)
    assert [report_sample_size(pairs) for pairs in (3, 465, 4000, 252_678)] == [50, 50, 100, 250]
    rouge = RougeL()
    table = under(light, rouge)
    again = under(light, rouge)
    assert table == again and (table.replies, table.pairs) == (2 * len(column(light, "pairs", "pair_id")), table.replies // 2)
    for row in table.rows:
        said = dict(part.split(":", 1) for part in row.signature.split("|") if ":" in part)
        assert row.signature.startswith(rouge.signature) and said["attack"] == row.attack
        assert float(said["eligible"]) == pytest.approx(row.whole.eligible / table.replies, abs=1e-4) and said["effect"].endswith(
            "at-equal-closeness"
        )
        assert said["texts"].startswith("s1-") and said["replies"] == str(table.replies)
    assert len({row.signature for row in table.rows}) == len(BUILT_IN)
    (names,) = (one for one in table.rows if one.attack == "names")
    assert names.whole.eligible < table.replies


def test_what_cannot_be_attacked_is_left_out_and_said(light: Path, tmp_path: Path) -> None:
    given = tmp_path / "judge.csv"
    rows = [f"{pair},{name},{len(pair)}" for pair in column(light, "pairs", "pair_id") for name in PAIR_VARIANTS]
    given.write_text("\n".join(["pair_id,variant,score", *rows]))
    names: list[Any] = [Length(), "dist-1", "rouge-l"]
    found = score(light, names, [given], shortcuts=False, attacks=partial(find_attacks, ["doubled"]))
    assert found.attacks and {one.metric for one in found.attacks.rows} == {"ROUGE-L"}
    assert [one.partition(":")[0] for one in found.attacks.notes] == ["length", "judge", "Dist-1"]


def test_a_metric_that_fails_on_an_attacked_text_is_a_fault_and_the_rest_is_kept(light: Path) -> None:
    held = (read_corpus(light, "pairs", PAIR_VARIANTS), read_corpus(light, "controls", CELLS))
    longest = max(len(text) for corpus in held for some in corpus.variants.values() for text in some)

    def by(text: str) -> float:
        if len(text) > longest:
            raise ValueError("too long")
        return float(len(text))

    names: list[Any] = [Scorer("short", by), "rouge-l"]
    found = score(light, names, shortcuts=False, attacks=partial(find_attacks, ["doubled", "shuffled"]))
    (fault,) = found.faults
    assert fault.metric == "short" and "doubled, attacked" in fault.where and "too long" in fault.what
    rows = {(one.metric, one.attack): one.whole for one in found.attacks.rows} if found.attacks else {}
    assert rows["short", "doubled"].eligible < rows["short", "shuffled"].eligible == rows["ROUGE-L", "doubled"].eligible


def test_contexts_of_a_few_pairs_are_those_of_the_whole_column(light: Path) -> None:
    whole = read_contexts(light, "pairs")
    rows = list(range(1, len(whole), 3))
    assert contexts_at(light, "pairs", rows) == [whole[row] for row in rows] and contexts_at(light, "pairs", []) == []


@pytest.mark.e2e
def test_score_prints_the_table_in_every_form_and_refuses_what_it_cannot_attack(
    light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["score", str(light), "--metric", "rouge-l", "--no-shortcuts"]
    attacks = ["--attacks", "doubled", "names"]
    assert main([*asked, *attacks]) == 0
    said = capsys.readouterr().out
    assert "ROUGE-L, attacked" in said and "\n  doubled " in said and "shuffled" not in said.partition("ROUGE-L, attacked")[2]
    assert main([*asked, *attacks, "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["attacks"]
    doubled, names = table["rows"]
    assert (doubled["attack"], set(doubled["by_variant"])) == ("doubled", set(PAIR_VARIANTS)) and names["eligible"] < doubled["eligible"]
    assert main([*asked, *attacks, "--csv"]) == 0
    rows = [row for row in csv.DictReader(io.StringIO(capsys.readouterr().out)) if row["table"] == "attacks"]
    effect, *rows = rows
    assert (effect["group"], effect["metric"], float(effect["value"])) == ("stance effect", "ROUGE-L", doubled["effect"]["value"])
    assert doubled["effect"]["over"] in effect["told"] and effect["contrast"] == ""
    assert {row["group"] for row in rows} == {"rises", "falls", "change", "in_effects"} and len(rows) == 8
    assert float(rows[0]["value"]) == doubled["rises"]["value"] and rows[0]["signature"] == doubled["signature"]
    assert main(asked) == 0 and "attacked" not in capsys.readouterr().out
    assert main([*asked, "--attacks", "nothing-such"]) == 2 and '"nothing-such": is not known' in capsys.readouterr().err
    assert main([*asked, "--rules", str(tmp_path / "absent")]) == 2 and "applies to attacks and fairness" in capsys.readouterr().err
    own = tmp_path / "own.jsonl"
    own.write_text('{"context": "I am sad.", "reply": "Oh."}\n')
    assert main(["score", str(own), "--metric", "vader", "--attacks"]) == 2
    assert "attacks cannot be used with texts of your own" in capsys.readouterr().err


def test_a_report_has_the_table_shows_it_and_does_not_let_hidden_text_into_its_page(released: tuple[Path, Any]) -> None:
    folder, _ = released
    told, page = read_tables(folder), (folder / "report" / "index.html").read_text()
    assert {row["attack"] for row in told["attacks"]["rows"]} == set(BUILT_IN)
    assert len({row["metric"] for row in told["attacks"]["rows"]}) > 5 and "Dist-1" in " ".join(told["attacks"]["told"])
    section = page.partition('<section id="attacks"')[2].partition("</section>")[0]
    assert all(name in section for name in BUILT_IN) and page.index('<section id="attacks"') > page.index('<section id="examples"')
    assert not list(unseen(told, page)) and list(unseen(told, page.replace(section, "")))
    for text in (text for one in find_attacks(["instruction"]).some for text in getattr(one, "texts", ())):
        assert text not in page and text not in json.dumps(told)


def test_verify_finds_a_changed_figure_and_takes_a_report_of_before(released: tuple[Path, Any]) -> None:
    told = read_tables(released[0])
    attacks = told["attacks"]
    row = next(one for one in attacks["rows"] if one["metric"] == "VADER")
    changed = [{**one, "rises": {**one["rises"], "value": one["rises"]["value"] + 0.01}} if one is row else one for one in attacks["rows"]]
    ((where, _),) = disagreements({**told, "attacks": {**attacks, "rows": changed}}, told)
    assert where.startswith("attacks: rows: VADER") and where.endswith("rises: value")
    one, other, _ = select_comparable(told, {**told, "attacks": {**attacks, "rows": [row]}}, {"VADER"})
    assert {found["metric"] for found in one["attacks"]["rows"]} == {"VADER"} and other["attacks"]["rows"] == [row]


@pytest.mark.e2e
def test_a_release_without_the_table_is_found(light: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(light, tmp_path / "release"))
    tables = read_tables(folder)
    assert tables.pop("attacks")
    told_anew(folder, tables)
    assert any("attacks" in one.where for one in report_faults(folder))
