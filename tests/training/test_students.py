"""Students: what the plain one learns from two pairs by hand, the same bytes in any order, and the packaged model made again."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes, digest_file
from empathy_eval.design.dataset import COLUMNS, MANIFEST, file_of
from empathy_eval.metrics.empathy_score.model import CHECKSUMS, CONFIG, METRICS, WEIGHTS
from empathy_eval.metrics.lexical import UNIT
from empathy_eval.metrics.protocol import Segments
from empathy_eval.training.plain import direction
from empathy_eval.training.task import PairBatch, TrainingTask, make_task, read_batches
from empathy_eval.training.train import WordsBaseline, train

Row = dict[str, Any]


def changed(folder: Path, copy: Path, change: Callable[[list[Row]], list[Row]]) -> Path:
    """A copy of a release with other pairs in its train split."""
    shutil.copytree(folder, copy)
    path = file_of(copy, "pairs", "train")
    pq.write_table(pa.Table.from_pylist(change(pq.read_table(path).to_pylist()), COLUMNS["pairs"]), path)
    return copy


def test_two_pairs_teach_what_is_derived_by_hand() -> None:
    winners = np.array([[4, 1, 0, 3], [8, 1, 0, 1]]) * (UNIT // 10)
    losers = np.array([[2, 2, 0, 1], [2, 2, 0, 3]]) * (UNIT // 10)
    learned = direction(winners, losers)
    # The first gains 0.2 and 0.6: mean 0.4, spread 0.2, t = 0.4 / (0.2 / sqrt 2) = 2 sqrt 2, t^2 = 8.
    # Winners spread by 0.2, losers by none.
    first = 0.4 / math.sqrt(0.04 / 2) * 8 / 12
    # The second is the same everywhere on each side, the third never there, and the fourth gains as much as it loses.
    assert learned.weights.tolist() == [round(first, 6), 0.0, 0.0, 0.0]
    assert learned.means.tolist() == [0.4, 0.15, 0.0, 0.2]
    spread = math.sqrt((0 + 0.16 + 0.04 + 0.04) / 4)
    assert learned.spreads.tolist() == pytest.approx([spread, 0.05, 0.0, 0.1], abs=1e-6)
    sums = [first * (one - 0.4) / spread for one in (0.4, 0.8, 0.2, 0.2)]
    assert learned.scale == pytest.approx(math.sqrt(sum(one**2 for one in sums) / 4), abs=1e-5)


def test_where_every_pair_gains_the_same_nothing_is_shrunk() -> None:
    learned = direction(np.array([[300_000], [500_000]]), np.array([[200_000], [400_000]]))
    assert learned.weights.tolist() == [1.0]


def test_words_alone_are_log_odds_by_hand() -> None:
    sides = (Segments(["yes yes", "maybe"], []), Segments(["no", "maybe"], []))
    metric = WordsBaseline.of("words", [PairBatch("", ["1", "2"], *sides)])
    # Three words in winners and two in losers, of three kinds; every count is one higher.
    yes, no = math.log((3 / 6) / (1 / 5)), math.log((1 / 6) / (2 / 5))
    assert metric.score("Yes, no") == pytest.approx(yes + no, abs=2e-6) and metric.score("unheard") == 0


@pytest.mark.e2e
def test_the_packaged_model_is_made_again_byte_by_byte(seeds: Path, tmp_path: Path) -> None:
    packaged = data_folder("empathyscore") / "plain"
    made = train(TrainingTask(seeds), "plain", tmp_path / "model")
    assert made.metrics["trained_on"] == {"pairs": 299, "contrasts": ["reference>apathetic"], "splits": ["train"]}
    # The draws behind the intervals are numpy's own, and change with it: its version stands beside them.
    same_numpy = f"numpy:{np.__version__}" in (packaged / METRICS).read_text()
    # Another pyarrow writes other files of the same rows.
    same_pyarrow = f"pyarrow=={pa.__version__}\n" in (Path(__file__).parents[2] / "constraints.txt").read_text()
    # Its files have a canary since, which is no row: their hash alone is another.
    configs = [json.loads((folder / CONFIG).read_text()) for folder in (tmp_path / "model", packaged)]
    assert [one["release"].pop("data") for one in configs] and configs[0] == configs[1]
    assert (tmp_path / "model" / WEIGHTS).read_bytes() == (packaged / WEIGHTS).read_bytes()
    if same_numpy and same_pyarrow:
        worths = [json.loads((folder / METRICS).read_text()) for folder in (tmp_path / "model", packaged)]
        assert worths[0]["splits"] == worths[1]["splits"] and worths[0]["trained_on"] == worths[1]["trained_on"]


def test_what_the_documents_say_of_the_packaged_model_is_in_its_figures() -> None:
    splits = json.loads((data_folder("empathyscore") / "plain" / METRICS).read_text())["splits"]
    told = (Path(__file__).parents[2] / "docs" / "empathyscore.md").read_text()
    for one, other in zip(splits["validation"]["stance"].values(), splits["test"]["stance"].values(), strict=True):
        cells = " | ".join(f"{row['accuracy']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" for row in (one, other))
        assert f"| {cells} |" in told
    for manner, rows in splits["test"]["manner"].items():
        cells = " | ".join(f"{row['accuracy']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" for row in rows.values())
        assert f"| {manner} | {rows['length']['pairs']} | {cells} |" in told
    assert f"{splits['validation']['stance']['length']['pairs']} pairs | test, {splits['test']['stance']['length']['pairs']} pairs" in told


def test_each_reply_of_a_crossed_item_wins_in_the_context_that_it_fits(seeds: Path) -> None:
    items = pq.read_table(file_of(seeds, "crossed", "train")).to_pylist()
    learned = set[tuple[str, str, str, str]]()
    for batch in read_batches(TrainingTask(seeds, ("fitting>other",))):
        last = [context[-1]["text"] for context in batch.winners.contexts]
        learned |= set(zip(batch.ids, last, batch.winners.texts, batch.losers.texts, strict=True))
    sides = (("context_1", "reply_1", "reply_2"), ("context_2", "reply_2", "reply_1"))
    assert len(learned) == 2 * len(items) > 0
    assert learned == {(row["crossed_id"], row[one][-1]["text"], row[fit], row[other]) for row in items for one, fit, other in sides}


def test_a_model_taught_by_crossed_items_is_measured_on_those_that_it_has_not_seen(seeds: Path, tmp_path: Path) -> None:
    metrics = train(make_task(seeds, ["fitting>other"], ["train"], lambda pairs: None), "plain", tmp_path / "model").metrics
    assert metrics["trained_on"]["contrasts"] == ["fitting>other"] and "data/crossed/test.parquet" in metrics["data"]
    rows = metrics["splits"]["test"]["fitting>other"]
    # Each reply fits one context: what reads the reply alone is right half of the time.
    assert {rows[name]["accuracy"] for name in ("length", "VADER positive share", "words alone, same pairs")} == {0.5}
    assert rows["length"]["pairs"] == pq.read_metadata(file_of(seeds, "crossed", "test")).num_rows


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model is worth is measured elsewhere."""
    monkeypatch.setattr("empathy_eval.training.train.measure_quality", lambda metric, task, pairs: {
        "trained_on": {"pairs": pairs, "contrasts": [], "splits": []}, "signatures": {}, "splits": {}
    })  # fmt: skip


def shuffled(rows: list[Row]) -> list[Row]:
    return random.Random(1).sample(rows, len(rows))


@pytest.mark.usefixtures("quick")
def test_a_model_names_the_data_files_that_it_read_and_nothing_of_the_manifest(seeds: Path, tmp_path: Path) -> None:
    line = f"{digest_file(file_of(seeds, 'pairs', 'train'))}  data/pairs/train.parquet\n"
    assert train(TrainingTask(seeds), "plain", tmp_path / "one").config["release"]["data"] == digest_bytes(line.encode())
    shutil.copytree(seeds, tmp_path / "release")
    manifest = json.loads((seeds / MANIFEST).read_text())
    (tmp_path / "release" / MANIFEST).write_text(json.dumps({**manifest, "date": "2020-01-01", "files": {}}))
    train(TrainingTask(tmp_path / "release"), "plain", tmp_path / "two")
    assert (tmp_path / "one" / CHECKSUMS).read_bytes() == (tmp_path / "two" / CHECKSUMS).read_bytes()


@pytest.mark.usefixtures("quick")
def test_the_order_of_rows_changes_no_weight_and_a_changed_text_does(seeds: Path, tmp_path: Path) -> None:
    def made(folder: Path) -> dict[str, bytes]:
        train(TrainingTask(folder), "plain", tmp_path / "model")
        return {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}

    first = made(seeds)
    again = made(changed(seeds, tmp_path / "shuffled", shuffled))
    one, two = (json.loads(files[CONFIG])["release"] for files in (first, again))
    # The same rows in another file.
    assert again[WEIGHTS] == first[WEIGHTS] and one["rows"] == two["rows"] and one["data"] != two["data"]
    other = made(changed(seeds, tmp_path / "other", lambda rows: [{**rows[0], "apathetic": "At least it is over."}, *rows[1:]]))
    assert json.loads(other[CONFIG])["release"]["rows"] != one["rows"] and other[WEIGHTS] != first[WEIGHTS]


def test_contrasts_and_splits_are_taken_once_and_in_their_order(seeds: Path) -> None:
    asked = ["empathetic>far_apathetic", "equal-closeness", "reference>apathetic"]
    task = make_task(seeds, asked, ["test", "train", "test"], lambda pairs: None)
    assert task.contrasts == ("reference>apathetic", "near_empathetic>apathetic", "empathetic>far_apathetic")
    assert task.splits == ("train", "test")
    found = {batch.contrast: batch.losers.texts[0] for batch in read_batches(replace(task, splits=("train",)))}
    control = pq.read_table(file_of(seeds, "controls", "train")).to_pylist()[0]
    assert found["near_empathetic>apathetic"] == control["apathetic"] and found["empathetic>far_apathetic"] == control["far_apathetic"]


def test_what_there_is_not_is_reported_at_once(seeds: Path) -> None:
    with pytest.raises(InputError) as error:
        make_task(seeds, ["kind>cold"], ["later"], lambda pairs: None)
    assert len(error.value.problems) == 2 and 'there is no "kind>cold"' in str(error.value)
    with pytest.raises(InputError, match="names nothing"):
        make_task(seeds, [], ["train"], lambda pairs: None)


def test_without_pairs_and_with_damaged_columns_nothing_is_trained(seeds: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no pairs of reference>apathetic in train"):
        train(TrainingTask(changed(seeds, tmp_path / "empty", lambda rows: [])), "plain", tmp_path / "model")
    with pytest.raises(InputError, match="does not hold what the data contract says"):
        train(TrainingTask(changed(seeds, tmp_path / "null", lambda rows: [{**rows[0], "reference": None}])), "plain", tmp_path / "model")
    with pytest.raises(InputError, match='"oracle" is not known'):
        train(TrainingTask(seeds), "oracle", tmp_path / "model")
    assert not (tmp_path / "model").exists()
