"""Scores a text and verdicts a pair as a file: what the figures of the stand are made of."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.evaluation import measure as stand
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.evaluation.measure import VERDICTS

# What shortcuts reach has tests of its own.
score = partial(stand.score, shortcuts=False)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_figures_of_an_evaluation_are_the_means_of_its_items(light: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"items{suffix}"
    measured = score(light, ["rouge-l", "length"], items=path)
    items = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    corpus, controls = read_corpus(light, "pairs", PAIR_VARIANTS), read_corpus(light, "controls", CELLS)
    assert len(items) == 2 * len(corpus) and list(items["metric"].unique()) == ["ROUGE-L", "length"]
    assert list(items["pair_id"][: len(corpus)]) == corpus.pair_ids
    for row in measured.inversion:
        mine = items[items["metric"] == row.metric]
        assert row.differences["empathetic - apathetic"].accuracy
        assert set(mine["signature"]) == {row.signature} and mine["score_near_empathetic"].notna().sum() == len(controls)
        for name in PAIR_VARIANTS:
            assert mine[f"score_{name}"].mean() == pytest.approx(row.scores[name], abs=1e-6)
    for row in (*measured.inversion, *measured.controls):
        mine = items[items["metric"] == row.metric]
        for name, column in VERDICTS.items():
            if one := row.differences.get(name):
                assert one.accuracy and mine[column].mean() == pytest.approx(one.accuracy.value, abs=1e-6)
        if stance := row.differences.get("stance"):
            both = mine[["verdict_near", "verdict_far"]].mean(axis=1).mean()
            assert stance.accuracy and both == pytest.approx(stance.accuracy.value, abs=1e-6)


def test_a_judge_that_leaves_pairs_out_has_items_without_scores(light: Path, tmp_path: Path) -> None:
    corpus = read_corpus(light, "pairs", PAIR_VARIANTS)
    judge = tmp_path / "judge.csv"
    judge.write_text("pair_id,variant,score\n" + "".join(f"{corpus.pair_ids[2]},{name},{len(name)}\n" for name in PAIR_VARIANTS))
    score(light, (), [judge], items=tmp_path / "items.parquet")
    items = pd.read_parquet(tmp_path / "items.parquet").set_index("pair_id")
    assert items["score_empathetic"].notna().sum() == items["verdict_released"].notna().sum() == 1
    assert items["verdict_released"][corpus.pair_ids[2]] == 1 and items["verdict_near"].isna().all()


def test_a_release_without_controls_has_no_score_of_one(light: Path, tmp_path: Path) -> None:
    bare = Path(shutil.copytree(light, tmp_path / "release"))
    for path in (bare / "data").glob("controls*/*.parquet"):
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    measured = score(bare, ["rouge-l", "length"], items=tmp_path / "items.parquet")
    items = pd.read_parquet(tmp_path / "items.parquet")
    assert not measured.controls and len(measured.inversion) == 2 and items["verdict_released"].notna().all()
    assert items[["score_near_empathetic", "score_far_apathetic", "verdict_near", "verdict_far"]].isna().all(axis=None)


def test_items_of_another_form_are_refused_before_anything_is_scored(
    light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r'"\.xlsx" is not a format for items'):
        score(light, ["no such metric"], items=tmp_path / "items.xlsx")
    assert main(["score", str(light), "--metric", "length", "--items", str(tmp_path / "x.CSV.gz")]) == 2
    assert "use a name that ends in .parquet or .csv" in capsys.readouterr().err and not list(tmp_path.iterdir())
