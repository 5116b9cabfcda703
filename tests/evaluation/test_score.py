"""Any metric, and scores from elsewhere, on the stand of the report."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import empathy_eval
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.text import words
from empathy_eval.cli import main
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.design.dataset import CANDIDATES
from empathy_eval.evaluation import measure as stand
from empathy_eval.evaluation.corpus.descriptives import AS_RELEASED, BY_VOICE, MANNERS
from empathy_eval.evaluation.corpus.pairs import read_candidates, read_corpus
from empathy_eval.evaluation.inversion.results import MetricRow
from empathy_eval.evaluation.inversion.results import rows as rows_of
from empathy_eval.metrics.scoring import Scoring

from tests.metrics.test_registry import install

METRICS = """\
from empathy_eval.metrics.protocol import MeanMetric

class Letters(MeanMetric):
    name, signature = "letters", "unit:letter"
    reads = ()
    def score(self, text):
        return float(len(text))

class Raises(Letters):
    name = "raises"
    def score(self, text):
        if "%s" in text:
            raise ValueError("no such text")
        return 1.0

class Few(Letters):
    name = "few"
    def score_all(self, segments):
        return [1.0]

class Nan(Letters):
    name = "nan"
    def score(self, text):
        return float("nan")

class Taught(Letters):
    name = "taught"
    trained_on = {"empathy-eval-demo": ["train"]}

class OfSeeds(Letters):
    name = "of seeds"
    trained_on = {"another": ["train"], "curated seeds": ["train"]}

class Standard(Letters):
    name = "standard"
    def score_all(self, segments):
        scores = [len(text) for text in segments.texts]
        return [score - sum(scores) / len(scores) for score in scores]

class Context(Letters):
    name, reads = "context", ("context",)
    def score(self, text, context):
        if text == "too much":
            raise ValueError("too much")
        return float(len(context))

class OneRow(Letters):
    name = "one row"
    def aggregate(self, sums):
        return [float(sums[0, 0] / sums[0, 1])]

class Diverse:
    name, signature = "diverse", "v:1"
    def measure(self, variants, dialogues, seed):
        raise ValueError("too diverse")
"""

# What shortcuts reach has tests of its own, and takes half of the time.
score = partial(stand.score, shortcuts=False)


@pytest.fixture
def strange(light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of metrics; one of them does not bear the first apathetic text."""
    text = read_corpus(light, "pairs", PAIR_VARIANTS).variants["apathetic"][0]
    (tmp_path / "strange_metrics.py").write_text(METRICS % text[:40].replace('"', '\\"'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    return tmp_path


def row_of(rows: Sequence[MetricRow], name: str) -> MetricRow:
    (found,) = (one for one in rows if one.metric == name)
    return found


def write_scores(path: Path, rows: Sequence[Sequence[object]], header: str = "pair_id,variant,score") -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def letters(folder: Path, config: str = "pairs", variants: Sequence[str] = PAIR_VARIANTS) -> list[list[object]]:
    corpus = read_corpus(folder, config, variants)
    return [[pair, name, len(corpus.variants[name][row])] for row, pair in enumerate(corpus.pair_ids) for name in variants]


def _after_head(printed: str) -> str:
    """What stands below the lines that say what a table is of."""
    lines = printed.splitlines(keepends=True)
    return "".join(one for one in lines if ", seal " not in one and not one.startswith("settings: ")).lstrip("\n")


def test_a_metric_by_module_and_name_is_measured_like_any_other(light: Path, strange: Path) -> None:
    measured = score(light, ["strange_metrics:Letters", "rouge-l"])
    corpus = read_corpus(light, "pairs", PAIR_VARIANTS)
    made = row_of(measured.inversion, "letters")
    for name in PAIR_VARIANTS:
        lengths = [len(text) for text in corpus.variants[name]]
        assert made.scores[name] == pytest.approx(sum(lengths) / len(lengths), abs=1e-6)
    one = made.differences["empathetic - apathetic"]
    won = [(len(b) > len(a)) + (len(b) == len(a)) / 2 for a, b in zip(*(corpus.variants[name] for name in PAIR_VARIANTS), strict=True)]
    assert one.accuracy and one.accuracy.value == pytest.approx(sum(won) / len(won), abs=1e-6) and not one.forced
    assert row_of(measured.inversion, "ROUGE-L").differences["empathetic - apathetic"].forced
    assert set(measured.groups) == {"scenario", "phase", "strategy", *MANNERS.values(), *(name for name, _ in BY_VOICE.values())}
    assert sum(rows[0].pairs for rows in measured.groups["phase"].values()) == len(corpus)


def test_scores_from_a_file_are_shown_as_the_metric_that_gave_them(light: Path, strange: Path) -> None:
    rows = letters(light) + letters(light, "controls", [name for name in CELLS if name not in PAIR_VARIANTS])
    given = score(light, (), [write_scores(strange / "judge.csv", rows)])
    own = score(light, ["strange_metrics:Letters"])
    for (table, group, one), (same_table, same_group, other) in zip(rows_of(given.to_json()), rows_of(own.to_json()), strict=True):
        assert table == "balance" or (table, group, one["scores"]) == (same_table, same_group, other["scores"])
        assert one["differences"] == other["differences"]
    assert row_of(given.inversion, "judge").signature.startswith("file:")


def test_pairs_of_equal_length_are_those_whose_texts_differ_by_a_tenth_at_most(light: Path, strange: Path) -> None:
    corpus = read_corpus(light, "pairs", PAIR_VARIANTS)
    lengths = [sorted(len(words(corpus.variants[name][row])) for name in PAIR_VARIANTS) for row in range(len(corpus))]
    (made,) = score(light, ["strange_metrics:Letters"]).matched["empathetic - apathetic"]
    assert made.pairs == sum(longer - shorter <= longer / 10 for shorter, longer in lengths) > 0


def test_one_split_alone_can_be_scored_and_part_of_the_pairs(light: Path, strange: Path) -> None:
    train = read_corpus(light, "pairs", PAIR_VARIANTS, splits=("train",))
    assert score(light, ["strange_metrics:Letters"], split="train").inversion[0].pairs == len(train)
    part = write_scores(strange / "part.csv", letters(light)[:20])
    assert score(light, (), [part]).inversion[0].pairs == 10
    with pytest.raises(InputError, match="holds no pairs in validation"):
        score(light, ["length"], split="validation")


def test_where_lower_scores_are_better_they_prefer_the_other(light: Path, strange: Path) -> None:
    path = write_scores(strange / "harm.csv", [[pair, name, int(name == "apathetic")] for pair, name, _ in letters(light)])
    (made,) = score(light, (), [path], lower_is_better=True).inversion
    one = made.differences["empathetic - apathetic"]
    assert one.value == -1 and one.prefers == "empathetic" and one.accuracy and one.accuracy.value == 1


def test_a_faulty_file_of_scores_is_refused_with_all_its_faults(light: Path, strange: Path) -> None:
    rows = letters(light)
    rows[0][2] = "warm"
    rows[3][0] = "059-00001-t03"
    rows[4][1] = "kind"
    rows[6][2] = "nan"
    rows.append(list(rows[10]))
    with pytest.raises(InputError) as found:
        score(light, (), [write_scores(strange / "bad.csv", rows)])
    said = str(found.value)
    for fault in (
        'line 2: score: "warm"', '"059-00001-t03" is not a pair of this release', 'line 6: variant: "kind"', 'line 8: score: "nan"',
        f'"{rows[10][0]}", {rows[10][1]} was scored before', f'"{rows[2][0]}" has no score of empathetic',
    ):  # fmt: skip
        assert fault in said, (fault, said)
    for text, fault in (
        ("pair_id,score\n", "has no column variant"),
        ("pair_id,variant,score\n", "holds no score"),
        ("\xff", "is not UTF-8"),
    ):
        (strange / "bad.csv").write_text(text, encoding="latin-1")
        with pytest.raises(InputError, match=fault):
            score(light, (), [strange / "bad.csv"])


@pytest.mark.parametrize(
    ("name", "what"),
    [("Raises", 'raised ValueError: "no such text"'), ("Few", "score_all returned 1 number for 2 texts"), ("Nan", "gave nan")],
)
def test_a_metric_that_fails_names_the_pair_and_the_rest_is_kept(
    name: str, what: str, light: Path, strange: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", str(light), "--metric", f"strange_metrics:{name}", "--metric", "length"]) == 1
    said = capsys.readouterr()
    first = read_corpus(light, "pairs", PAIR_VARIANTS).pair_ids[0]
    assert f"metric {name.lower()}: " in said.err and first.rpartition("-")[0] in said.err and what in said.err
    assert "length, pairs, " in said.out


def test_a_metric_that_is_fitted_on_each_set_of_texts_has_a_fault_and_no_row(light: Path, strange: Path) -> None:
    measured = score(light, ["strange_metrics:Standard", "length"])
    assert [row.metric for row in measured.inversion] == [row.metric for row in measured.controls] == ["length"]
    (fault,) = measured.faults
    assert fault.metric == "standard" and "gave one text two scores" in fault.what and ", apathetic" in fault.where


def in_test(light: Path, folder: Path) -> Path:
    """A copy of a release whose dialogues are of the test split."""
    copy = Path(shutil.copytree(light, folder))
    for config in ("dialogues", "pairs", "controls"):
        train, test = (copy / "data" / config / f"{split}.parquet" for split in ("train", "test"))
        train.rename(train.with_name("swap"))
        test.rename(train)
        train.with_name("swap").rename(test)
    return copy


@pytest.mark.e2e
def test_a_metric_that_was_trained_on_the_release_is_measured_on_its_test_split_which_is_said(light: Path, strange: Path) -> None:
    release = in_test(light, strange / "release")
    found = score(release, ["strange_metrics:Taught", "length"])
    (note,) = found.notes
    assert note == "taught was trained on train of this release: measured on test alone; --split all measures all"
    assert found.to_json()["notes"] == [note] and [one["told"] for one in found.records() if one["table"] == "notes"] == [note]
    (everything,) = score(release, ["strange_metrics:Taught"], split="all").notes
    assert everything == "warning: taught was trained on train of this release: no figure over train shows how good it is"
    assert score(release, ["strange_metrics:Taught"], split="test").notes == score(release, ["length"]).notes == ()
    with pytest.raises(InputError, match="holds no pairs in train"):
        score(release, ["length"], split="train")


def test_where_the_test_split_is_empty_all_is_measured_with_a_warning(
    light: Path, strange: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, metric in (("taught", "Taught"), ("of seeds", "OfSeeds")):
        assert main(["score", str(light), "--metric", f"strange_metrics:{metric}", "--no-shortcuts"]) == 0
        assert _after_head(capsys.readouterr().out).startswith(
            f"warning: {name} was trained on train of this release: no figure over train"
        )


@pytest.mark.e2e
def test_a_first_look_measures_pairs_drawn_by_their_ids_and_says_so(light: Path, strange: Path) -> None:
    names = ["strange_metrics:Context", "length", "dist-1"]
    few, more, again = (stand.score(light, names, limit=limit) for limit in (3, 5, 3))
    assert few == again and few.inversion[0].pairs == 3 and more.inversion[0].pairs == 5
    assert few.audit is None and few.crossed is None and not few.candidates
    assert few.notes[0].startswith("a first look: 3 pairs, drawn by their ids, without the shortcut audit")
    rows = [*few.inversion, *few.controls]
    assert all("pairs:3,drawn,sha256" in f"{row.signature}|{row.interval_signature}" for row in rows)
    assert all("pairs:3,drawn,sha256" in one.signature for one in few.comparisons)
    write_items = [stand.score(light, names[:2], limit=limit, items=strange / f"{limit}.csv") and limit for limit in (3, 5)]
    drawn = [{line["pair_id"] for line in csv.DictReader((strange / f"{limit}.csv").open())} for limit in write_items]
    assert len(drawn[0]) == 3 and drawn[0] < drawn[1], "a smaller draw is a part of a larger one"
    assert not any("drawn" in str(row.interval_signature) for row in score(light, ["length"]).inversion)


def test_a_first_look_has_the_context_of_each_pair(light: Path, strange: Path) -> None:
    lengths = {}
    for limit in (3, None):
        score(light, ["strange_metrics:Context"], limit=limit, items=strange / "items.csv")
        with (strange / "items.csv").open() as stream:
            lengths[limit] = {one["pair_id"]: tuple(one.values()) for one in csv.DictReader(stream)}
    assert lengths[3].items() <= lengths[None].items() and len(lengths[3]) == 3


def test_a_limit_is_a_whole_number_from_1_and_of_pairs_of_a_release_alone(
    light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.jsonl").write_text('{"context": "I am sad", "reply": "I hear you"}\n')
    for source, given, said in (
        (light, "0", "limit"),
        (light, "x", "whole number"),
        (tmp_path / "texts.jsonl", "3", "limit cannot be used"),
    ):
        try:
            status = main(["score", str(source), "--metric", "length", "--limit", given])
        except SystemExit as ended:
            status = int(str(ended.code))
        assert status == 2 and said in capsys.readouterr().err


def test_nothing_to_score_with_is_said(light: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(light)]) == 2
    assert "give --metric NAME, --scores FILE or both" in capsys.readouterr().err


def test_a_second_score_asks_a_costly_metric_for_nothing(light: Path, strange: Path) -> None:
    from empathy_eval.metrics.scoring import ScoreCache

    (strange / "costly.py").write_text(
        METRICS.split("class Raises")[0].replace("reads = ()", "reads = ()\n    keep = True\n    asked = 0").replace(
            "def score(self, text):", "def score(self, text):\n        Letters.asked += 1"
        )
    )  # fmt: skip
    cache = ScoreCache(strange / "scores.sqlite")
    first = score(light, ["costly:Letters"], scoring=Scoring(cache))
    import costly  # type: ignore[import-not-found]

    asked = costly.Letters.asked
    assert asked > 0 and score(light, ["costly:Letters"], scoring=Scoring(cache)) == first and costly.Letters.asked == asked


def with_a_test_split(folder: Path) -> Path:
    """The last dialogue of train is moved to test."""
    last = max(read_corpus(folder, "pairs", PAIR_VARIANTS).dialogues)
    for config in ("dialogues", "pairs", "controls"):
        train, test = (folder / "data" / config / f"{split}.parquet" for split in ("train", "test"))
        table = pq.read_table(train)
        moved = pc.equal(table["dialogue_id"], last)
        pq.write_table(table.filter(moved), test)
        pq.write_table(table.filter(pc.invert(moved)), train)
    return folder


def with_candidates(folder: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, schema=CANDIDATES), folder / "candidates.parquet")
    return folder


@pytest.mark.e2e
def test_before_the_contrast_checks_the_first_text_that_only_they_refused_counts(light: Path, strange: Path) -> None:
    folder = Path(shutil.copytree(light, strange / "release"))
    corpus = read_corpus(folder, "pairs", PAIR_VARIANTS)
    one, two = corpus.pair_ids[0], corpus.pair_ids[1]
    assert read_candidates(folder, corpus) is None
    refused = [
        {"pair_id": one, "variant": "empathetic", "attempt": 1, "text": "unsafe", "reasons": ["overlap_high", "unsafe_diagnosis"]},
        {"pair_id": one, "variant": "empathetic", "attempt": 2, "text": "too near", "reasons": ["overlap_high"]},
        {"pair_id": one, "variant": "empathetic", "attempt": 3, "text": "nearer", "reasons": ["overlap_high"]},
        {"pair_id": two, "variant": "apathetic", "attempt": 1, "text": "other words", "reasons": ["edit_ratio_high"]},
    ]
    found = read_candidates(with_candidates(folder, refused), corpus)
    assert found is not None and found.corpus.pair_ids == sorted([one, two])
    texts = dict(zip(found.corpus.pair_ids, zip(*(found.corpus.variants[name] for name in PAIR_VARIANTS), strict=True), strict=True))
    assert texts == {one: (corpus.variants["apathetic"][0], "too near"), two: ("other words", corpus.variants["empathetic"][1])}
    assert len(found.same) == len(corpus) - 2
    (made,) = score(folder, ["strange_metrics:Letters"]).candidates
    assert not score(folder, ["bleu"]).candidates[0].differences["empathetic - apathetic"].forced
    lengths = [len(text) for text in corpus.variants["empathetic"][1:]] + [len("too near")]
    assert made.scores["empathetic"] == pytest.approx(sum(lengths) / len(lengths), abs=1e-6)


def test_before_the_contrast_checks_one_split_alone_counts(light: Path, strange: Path) -> None:
    folder = with_a_test_split(Path(shutil.copytree(light, strange / "release")))
    train, test = (read_corpus(folder, "pairs", PAIR_VARIANTS, splits=(split,)) for split in ("train", "test"))
    rows = [
        {"pair_id": pair, "variant": "empathetic", "attempt": 1, "text": "too near", "reasons": ["overlap_high"]}
        for pair in (train.pair_ids[0], test.pair_ids[0])
    ]
    (made,) = score(with_candidates(folder, rows), ["strange_metrics:Letters"], split="test").candidates
    assert made.pairs == len(test)
    with_candidates(folder, rows[:1])
    assert score(folder, ["strange_metrics:Letters"], split="test").candidates == []


def test_before_the_contrast_checks_a_metric_reads_the_context_and_its_faults_are_reported(light: Path, strange: Path) -> None:
    folder = Path(shutil.copytree(light, strange / "release"))
    pair = read_corpus(folder, "pairs", PAIR_VARIANTS).pair_ids[0]
    row = {"pair_id": pair, "variant": "empathetic", "attempt": 1, "text": "too near", "reasons": ["overlap_high"]}
    measured = score(with_candidates(folder, [row]), ["strange_metrics:Context"])
    assert measured.candidates[0].scores == measured.inversion[0].scores
    measured = score(with_candidates(folder, [{**row, "text": "too much"}]), ["strange_metrics:Context"])
    assert [(row.left_out, row.pairs + 1) for row in measured.candidates] == [(1, measured.inversion[0].pairs)]
    assert [(fault.where, fault.texts) for fault in measured.faults] == [(f"{pair}, empathetic", 1)]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("strange_metrics:Raises", "no such text"), ("strange_metrics:OneRow", "not two equal numbers"),
        ("strange_metrics:Diverse", "too diverse"),
    ],
)  # fmt: skip
def test_a_metric_that_fails_and_is_alone_is_reported(
    name: str, what: str, light: Path, strange: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", str(light), "--metric", name]) == 1
    assert what in capsys.readouterr().err


def test_a_measure_of_whole_sets_can_be_alone(light: Path) -> None:
    assert [row.metric for row in score(light, ["dist-1"]).inversion] == ["Dist-1"]


@pytest.mark.e2e
def test_a_judge_of_few_pairs_takes_no_group_from_a_metric(light: Path, strange: Path) -> None:
    alone = score(light, ["length"])
    both = score(light, ["length"], [write_scores(strange / "judge.csv", letters(light)[:4])])
    for name, found in alone.groups.items():
        assert {group: rows[0] for group, rows in both.groups[name].items()} == {group: rows[0] for group, rows in found.items()}


def test_a_judge_of_the_whole_release_can_be_seen_on_one_split(light: Path, strange: Path) -> None:
    folder = with_a_test_split(Path(shutil.copytree(light, strange / "release")))
    test = read_corpus(folder, "pairs", PAIR_VARIANTS, splits=("test",))
    path = write_scores(strange / "judge.csv", letters(folder))
    assert score(folder, (), [path], split="test").inversion[0].pairs == len(test)
    write_scores(path, [row for row in letters(folder) if row[0] not in test.pair_ids])
    with pytest.raises(InputError, match="holds no score of a pair in test"):
        score(folder, (), [path], split="test")


@pytest.mark.e2e
def test_pairs_that_a_file_leaves_out_are_reported_first_and_in_every_form(
    light: Path, strange: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = letters(light)
    every, path = len(rows) // 2, str(write_scores(strange / "judge.csv", rows[:20]))
    for metric in ([], ["--metric", "length"]):
        base = ["score", str(light), "--scores", path, "--no-shortcuts", *metric]
        assert main(base) == main([*base, "--csv"]) == 0
        first, _, rest = _after_head(capsys.readouterr().out).partition("\n")
        assert first == f"judge: 10 of {every} pairs; {every - 10} left out"
        assert f"judge, pairs, 10 of {every} pairs; {every - 10} left out: apathetic" in rest
        lines = list(csv.DictReader(io.StringIO(rest[rest.index("release,version") :])))
        told = {line["metric"]: (line["pairs"], line["of"], line["left_out"]) for line in lines if line["table"] == "pairs"}
        assert told["judge"] == ("10", str(every), str(every - 10)) and told.get("length", ("", "", "0"))[2] == "0"
        assert main([*base, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        coverage = {row["metric"]: row["coverage"] for row in found["inversion"]}
        assert coverage["judge"] == {"pairs": 10, "of": every, "left_out": every - 10}
        assert not metric or coverage["length"] == {"pairs": every, "of": every, "left_out": 0}
        for name, groups in found["groups"].items():
            judged = [row["coverage"] for rows in groups.values() for row in rows if row["metric"] == "judge"]
            # It has no score of a control.
            assert sum(one["pairs"] for one in judged) == (10 if name.endswith(AS_RELEASED) else 0)
    assert main(["score", str(light), "--scores", str(write_scores(strange / "judge.csv", rows))]) == 0
    assert "left out" not in capsys.readouterr().out


@pytest.mark.e2e
def test_strictly_a_pair_that_is_left_out_counts_as_wrong_in_accuracy_alone(
    light: Path, strange: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [[pair, name, int(name == "empathetic")] for pair, name, _ in letters(light)]
    every, path = len(rows) // 2, write_scores(strange / "judge.csv", rows[:20])
    (kind,), (strict,) = (score(light, (), [path], strict=one).inversion for one in (False, True))
    (one,), (other,) = (row.differences.values() for row in (kind, strict))
    assert one.accuracy and other.accuracy and other.accuracy.low is not None and other.accuracy.high is not None
    assert one.accuracy.value == 1 and other.accuracy.value == pytest.approx(10 / every, abs=1e-6)
    assert other.accuracy.low <= other.accuracy.number <= other.accuracy.high and other.accuracy.low < 1
    assert (one.value, one.low, one.high, one.auc, kind.pairs) == (other.value, other.low, other.high, other.auc, strict.pairs)
    assert strict.signature == f"{kind.signature}|missing:wrong"
    assert main(["score", str(light), "--scores", str(path), "--strict"]) == 0
    assert _after_head(capsys.readouterr().out).startswith(f"judge: 10 of {every} pairs; {every - 10} left out, wrong in accuracy\n")
    whole = write_scores(strange / "whole.csv", rows)
    (kind,), (strict,) = (score(light, (), [whole], strict=one).inversion for one in (False, True))
    assert kind.differences == strict.differences


def test_strictly_a_group_and_a_contrast_count_their_own_missing_pairs(light: Path, strange: Path) -> None:
    rest = [name for name in CELLS if name not in PAIR_VARIANTS]
    ids = read_corpus(light, "controls", CELLS).pair_ids
    kept = set(ids[: len(ids) // 2])
    good = {"near_empathetic": 1, "empathetic": 1}
    rows = [[pair, name, good.get(str(name), 0)] for pair, name, _ in letters(light) + letters(light, "controls", rest) if pair in kept]
    measured = score(light, (), [write_scores(strange / "judge.csv", rows)], strict=True)
    (cells,) = measured.controls
    near = cells.differences["stance, near"].accuracy
    assert near and near.value == pytest.approx(len(kept) / len(ids), abs=1e-6) and cells.pairs == len(kept)
    corpus = read_corpus(light, "controls", CELLS)
    for phase, found in measured.groups["phase"].items():
        mine = [pair for pair, one in zip(corpus.pair_ids, corpus.groups["phase"], strict=True) if one == phase]
        for row in found:
            accuracy = row.only.accuracy
            assert accuracy and accuracy.value == pytest.approx(len(kept & set(mine)) / len(mine), abs=1e-6)


@pytest.mark.e2e
def test_each_file_of_scores_is_a_row_in_the_order_given(light: Path, strange: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [write_scores(strange / f"{name}.csv", letters(light)[:many]) for name, many in (("b", None), ("a", 20))]
    measured = score(light, ["length"], paths)
    assert [row.metric for row in measured.inversion] == ["length", "b", "a"]
    for number, path in enumerate(paths, 1):
        alone = score(light, (), [path])
        assert alone.inversion == measured.inversion[number : number + 1]
        assert [row for row in measured.groups["phase, as released"]["comforting"] if row.metric == path.stem] == alone.groups[
            "phase, as released"
        ]["comforting"]
    command = ["score", str(light), "--no-shortcuts", "--scores", str(paths[0]), "--scores", str(paths[1])]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert _after_head(said).startswith("a: 10 of ") and said.index("b, pairs, ") < said.index("a, pairs, ")


@pytest.mark.e2e
def test_three_files_and_two_metrics_in_one_table_are_each_as_alone(light: Path, strange: Path) -> None:
    rest = [name for name in CELLS if name not in PAIR_VARIANTS]
    rows = letters(light) + letters(light, "controls", rest)
    kept = {row[0] for row in rows[::7]}
    some = {"whole": rows, "part": [row for row in rows if row[0] not in kept], "pairs": letters(light)}
    paths = [write_scores(strange / f"{name}.csv", found) for name, found in some.items()]
    together = score(light, ["rouge-l", "vader"], paths).to_json()
    every = [*(score(light, [name]) for name in ("rouge-l", "vader")), *(score(light, (), [path]) for path in paths)]
    alone = [row for one in every for table, group, row in rows_of(one.to_json()) if table != "balance"]
    beside = [row for table, group, row in rows_of(together) if table != "balance"]

    def bare(row: Mapping[str, Any]) -> str:
        """Without what is corrected over all metrics of a table."""
        return json.dumps({**row, "differences": {name: {**one, "holm": None} for name, one in row["differences"].items()}})

    assert sorted(map(bare, alone)) == sorted(map(bare, beside)) and len({row["metric"] for row in alone}) == 5
    twos = [(one["one"], one["other"], one["pairs"]) for one in together["comparisons"] if one["contrast"] == "stance"]
    covered = {row["metric"]: row["pairs"] for row in together["controls"]}
    assert len(twos) == 6 and all(pairs == min(covered[one], covered[other]) for one, other, pairs in twos)


def test_rows_of_one_name_are_refused(light: Path, strange: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (strange / "more").mkdir()
    paths = [write_scores(strange / name, letters(light)) for name in ("judge.csv", "more/judge.csv", "length.csv")]
    command = ["score", str(light), "--metric", "length", *(part for path in paths for part in ("--scores", str(path)))]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert f'{paths[1]}: there is another row with the name "judge"' in said and f"{paths[2]}: there is another row" in said
    assert f"{paths[0]}:" not in said


@pytest.mark.parametrize("content", ['{"name": ', '{"name": "mine"}'])
def test_a_broken_manifest_is_named(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text(content)
    assert main(["score", str(tmp_path), "--metric", "length"]) == 2
    assert "manifest.json" in capsys.readouterr().err


@pytest.mark.e2e
def test_a_strangers_package_shows_up_in_score_and_in_the_report(light: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(install(tmp_path, "stranger")), str(Path(empathy_eval.__file__).parent.parent)]),
    }
    folder = Path(shutil.copytree(light, tmp_path / "release"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["configuration"]["report"] = {"metrics": ["rouge-l", "warmth"], "bootstrap": 20}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    commands = [["score", str(folder), "--metric", "warmth"], ["report", str(folder), "--out", str(tmp_path / "report")]]
    run = "import json, sys; from empathy_eval.cli import main; [main([*one, '--no-cache', '--json']) for one in json.loads(sys.argv[1])]"
    command = [sys.executable, "-c", run, json.dumps(commands)]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    scored, end = json.JSONDecoder().raw_decode(said)
    made = json.loads(said[end:])
    assert scored["inversion"][0]["metric"] == "Warmth"
    assert [row["metric"] for row in made["controls"]] == ["ROUGE-L", "Warmth"]
    assert "Warmth" in (tmp_path / "report" / "index.html").read_text()
