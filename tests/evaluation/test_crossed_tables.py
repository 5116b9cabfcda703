"""Crossed items beside the other tables of a release: scores from files, what is printed, what the page shows, and what verify finds."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.commands.score_tables import score_table
from empathy_eval.design.dataset import SPLITS, files_of, read_manifest, read_tables
from empathy_eval.evaluation.crossed_items import OF_BOTH, WHOLE_SETS, read_items
from empathy_eval.evaluation.external.score_file import of_crossed, read_crossed_scores
from empathy_eval.evaluation.inversion.rows import FIGURES, CrossedTable
from empathy_eval.evaluation.measure import score
from empathy_eval.releases.verify.report import disagreements, select_comparable

from tests.doubles.on_the_page import unseen

HEADER = "crossed_id,context,reply,score"
IDS = ["017-seed-x1", "017-seed-x2"]
Give = Callable[[int, int], float]


def fits(context: int, reply: int) -> float:
    return float(context == reply)


def written(path: Path, ids: Sequence[str], give: Give = fits) -> Path:
    lines: list[list[Any]] = [[name, context, reply, give(context, reply)] for name in ids for context in (1, 2) for reply in (1, 2)]
    if path.suffix == ".jsonl":
        rows = [dict(zip(HEADER.split(","), one, strict=True)) for one in lines]
        path.write_text("".join(json.dumps({**one, "model": "m"}) + "\n" for one in rows))
    else:
        tab = "\t" if path.suffix == ".tsv" else ","
        path.write_text("".join(tab.join(map(str, one)) + "\n" for one in [HEADER.split(","), *lines]))
    return path


def ids_of(folder: Path, splits: Sequence[str] = SPLITS) -> Sequence[str]:
    items = read_items(folder, splits)
    assert items is not None
    return items.ids


def crossed(folder: Path, *files: Path, **how: Any) -> CrossedTable:
    found = score(folder, (), files, shortcuts=False, **how).crossed
    assert found is not None
    return found


@pytest.mark.parametrize("change", [list.clear, list.pop])
def test_a_context_of_a_stranger_that_does_not_end_with_the_seeker_is_refused(
    light: Path, tmp_path: Path, change: Callable[[list[Any]], Any]
) -> None:  # fmt: skip
    folder = shutil.copytree(light, tmp_path / "odd")
    path = next(one for one in files_of(folder, "crossed") if "017-seed-x1" in pq.read_table(one)["crossed_id"].to_pylist())
    rows = (table := pq.read_table(path)).to_pylist()
    change(rows[0]["context_1"])
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    with pytest.raises(InputError, match=r'crossed item ".+": a context does not end with a turn of the seeker \(1 such item\)'):
        score(folder, ["length"], shortcuts=False)


def values(found: CrossedTable, place: int = 0) -> list[float]:
    return [one.number for one in found.metrics[place].figures.values() if one]


def test_a_file_of_scores_reads_the_same_with_commas_with_tabs_and_as_json(tmp_path: Path) -> None:
    read = [read_crossed_scores(written(tmp_path / f"judge.{form}", IDS), IDS) for form in ("csv", "tsv", "jsonl")]
    wanted = {(name, context, reply): fits(context, reply) for name in IDS for context in (1, 2) for reply in (1, 2)}
    assert [one.scores for one in read] == [wanted] * 3 and all(of_crossed(one.path) for one in read)
    assert all(one.signature.startswith("file:") for one in read)
    other = tmp_path / "pairs.csv"
    other.write_text("pair_id,variant,score\n")
    assert not of_crossed(other)


def test_what_is_wrong_with_a_file_of_scores_is_said_at_once(tmp_path: Path) -> None:
    lines = [HEADER, "017-seed-x1,1,1,0.5", "017-seed-x1,1,1,0.6", "018-seed-x1,1,1,1", "017-seed-x2,3,1,1", "017-seed-x2,1,2,high", "a,1"]
    path = tmp_path / "judge.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError) as caught:
        read_crossed_scores(path, IDS)
    said = str(caught.value)
    for part in (
        'line 3: "017-seed-x1", reply 1 in context 1 was scored before', 'line 4: "018-seed-x1" is not a crossed item of this release',
        "line 5: context: 3.0 is not known", 'line 6: score: "high" is not of type number', 'line 7: reply: "" is not known',
        '"017-seed-x1" has no score of reply 2 in context 1 and reply 1 in context 2 and reply 2 in context 2',
    ):  # fmt: skip
        assert part in said, part
    empty, headless = tmp_path / "empty.csv", tmp_path / "headless.csv"
    empty.write_text(HEADER + "\n")
    headless.write_text("crossed_id,context,score\n")
    for one, part in ((empty, "holds no score"), (headless, "does not have exactly one column reply")):
        with pytest.raises(InputError, match=part):
            read_crossed_scores(one, IDS)


def test_scores_from_files_are_in_the_table_of_crossed_items(light: Path, tmp_path: Path) -> None:
    ids = ids_of(light)
    good, bad = written(tmp_path / "good.csv", ids), written(tmp_path / "bad.jsonl", ids, lambda context, reply: float(context))
    found = crossed(light, good, bad)
    assert [one.metric for one in found.metrics] == ["good", "bad"] and found.items == len(ids) == sum(found.sources.values())
    assert values(found) == [1, 1, 1] and values(found, 1) == [0.5, 0, 0.5]
    assert values(crossed(light, good, lower_is_better=True)) == [0, 0, 0]
    some = written(tmp_path / "some.csv", ids[:1])
    assert (lax := crossed(light, some).metrics[0]).items == 1 and lax.left_out == len(ids) - 1
    assert values(crossed(light, some, strict=True)) == pytest.approx([1 / len(ids)] * 3, abs=1e-6)


def test_files_of_crossed_items_are_noted_as_neither_attacked_nor_asked_and_nothing_is_counted(
    light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "judge.csv", ids_of(light))
    assert main(["score", str(light), "--scores", str(path), "--no-shortcuts", "--attacks", "doubled", "--fairness"]) == 0
    said = capsys.readouterr().out
    assert "under attack" not in said and "judge: not attacked, as its scores are of crossed items" in said
    assert "judge: is not asked, as its scores are of crossed items" in said


def test_a_file_that_is_of_no_item_measured_or_of_a_release_without_any_is_refused(light: Path, tmp_path: Path) -> None:
    train, other = ids_of(light, ("train",)), [split for split in ("validation", "test") if len(ids_of(light, (split,)))]
    path = written(tmp_path / "judge.csv", train)
    for split in other:
        with pytest.raises(InputError, match=f"holds no score of a crossed item in {split}"):
            score(light, (), [path], split=split, shortcuts=False)
    plain = tmp_path / "plain"
    shutil.copytree(light, plain)
    shutil.rmtree(plain / "data" / "crossed")
    with pytest.raises(InputError, match="has no crossed items"):
        score(plain, (), [path], shortcuts=False)
    measured = score(plain, ["length"], shortcuts=False)
    assert measured.crossed is None and "crossed" not in measured.to_json() and "crossed" not in score_table(measured)
    with pytest.raises(InputError, match='another row with the name "length"'):
        score(light, ["length"], [path.rename(tmp_path / "length.csv")], shortcuts=False)


@pytest.mark.e2e
def test_the_command_prints_one_table_and_gives_json_and_csv(light: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(light), "--metric", "length", "--metric", "rouge-l", "--metric", "dist-1", "--no-cache"]) == 0
    table = capsys.readouterr().out
    (start,) = (place for place, line in enumerate(table.splitlines()) if line.startswith("crossed items"))
    part = "\n".join(table.splitlines()[start:]).partition("\n\n")[0]
    assert "echo of what differs" in part and f"not measured: Dist-1 ({WHOLE_SETS})" in part
    assert "ROUGE-L" in part and len(part.splitlines()) < 14
    measured = score(light, ["length", "rouge-l", "dist-1"])
    told = measured.to_json()["crossed"]
    rows = {row["metric"]: row for row in told["metrics"]}
    assert rows["length"]["fitting"]["value"] == 0.5 and rows["length"]["both_right"]["value"] == 0 and rows["ROUGE-L"]["fitting"] is None
    lines = [one for one in csv.DictReader(io.StringIO(measured.to_csv())) if one["table"] == "crossed"]
    assert [(one["metric"], one["contrast"]) for one in lines][:4] == [*(("length", name) for name in FIGURES), ("ROUGE-L", "")]
    assert lines[0]["group"] == "metrics" and lines[0]["accuracy"] == "0.5" and "a reference is read" in lines[3]["told"]
    assert {one["metric"] for one in lines if one["group"] == "shortcuts"} == {row["metric"] for row in told["shortcuts"]}


def test_a_report_tells_crossed_items_and_verify_makes_the_figures_again(light: Path) -> None:
    tables, page = read_tables(light), (light / "report" / "index.html").read_text(encoding="utf-8")
    told = tables["crossed"]
    assert told["items"] == sum(read_manifest(light)["counts"]["crossed"].values()) and told["sources"] == {"seed": told["items"]}
    assert page.count('<section id="crossed"') == 1 and page.index('class="first"') < page.index('href="#crossed"')
    assert not list(unseen(tables, page))
    other = json.loads(json.dumps(tables))
    other["crossed"]["shortcuts"][1]["fitting"]["value"] += 0.001
    assert [where for where, _ in disagreements(other, tables)] == [f"crossed: shortcuts: {OF_BOTH}: fitting: value"]
    assert list(unseen(other | {"crossed": {**told, "metrics": [{**told["shortcuts"][1], "fitting": {"value": 0.9873}}]}}, page))
    del other["crossed"]
    assert list(disagreements(other, tables)) == [("crossed", "is missing")]
    kept, _, _ = select_comparable(tables, tables, {"length"})
    assert [row["metric"] for row in kept["crossed"]["metrics"]] == ["length"]
