"""What ``score`` prints."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from empathy_eval.cli import main
from empathy_eval.commands.score_tables import score_table
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.evaluation.inversion.results import NUMBERS
from empathy_eval.evaluation.measure import score


@pytest.mark.e2e
def test_text_json_and_csv_say_the_same(light: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["score", str(light), "--metric", "rouge-l"]
    assert main(base) == main([*base, "--json"]) == main([*base, "--csv"]) == 0
    said = capsys.readouterr().out
    measured = score(light, ["rouge-l"])
    assert score_table(measured) in said and measured.to_csv() in said
    assert json.dumps({**measured.to_json(), "canary": []}, indent=2, ensure_ascii=False) in said
    lines = list(csv.DictReader(io.StringIO(measured.to_csv())))
    (one,) = (line for line in lines if line["table"] == "pairs")
    assert float(one["value"]) == measured.inversion[0].differences["empathetic - apathetic"].value and one["forced"] == "True"


@pytest.mark.e2e
def test_the_csv_is_the_data_frame(light: Path, tmp_path: Path) -> None:
    pairs = score(light, ["length"]).inversion[0].pairs
    ids = pq.read_table(light / "data" / "pairs" / "train.parquet")["pair_id"].to_pylist()
    judge = tmp_path / "judge.csv"
    judge.write_text("pair_id,variant,score\n" + "".join(f"{one},{name},{len(name)}\n" for one in ids[:3] for name in PAIR_VARIANTS))
    measured = score(light, ["length", "dist-1"], [judge])
    frame = measured.to_pandas()
    read = pd.read_csv(io.StringIO(measured.to_csv()), keep_default_na=False, na_values={name: [""] for name in NUMBERS})
    pd.testing.assert_frame_equal(frame, read, check_dtype=False)
    raw = frame[(frame.table == "pairs") & (frame.contrast == "empathetic - apathetic")].set_index("metric")
    assert [raw[name]["judge"] for name in ("pairs", "of", "left_out")] == [3, pairs, pairs - 3]
    assert raw["value"]["length"] == measured.inversion[0].differences["empathetic - apathetic"].value
    assert np.isnan(raw["p"]["Dist-1"]) and frame["value"].dtype == "float64" and frame["forced"].dtype == "bool"
    assert {"pairs", "2x2", "equal length", "scenario", "phase", "strategy"} <= set(frame.table)


def test_the_csv_carries_every_number_and_word_of_the_json(light: Path, tmp_path: Path) -> None:
    ids = pq.read_table(light / "data" / "pairs" / "train.parquet")["pair_id"].to_pylist()
    judge = tmp_path / "judge.csv"
    judge.write_text("pair_id,variant,score\n" + "".join(f"{one},{name},{len(name)}\n" for one in ids[:3] for name in PAIR_VARIANTS))
    measured = score(light, ["length", "rouge-l", "dist-1"], [judge])
    lines = list(csv.DictReader(io.StringIO(measured.to_csv())))
    cells = {cell for line in lines for cell in line.values()}
    told = " ".join(cells)
    numbers = {float(cell) for cell in cells if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", cell)}

    def leaves(value: object) -> Iterator[object]:
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from leaves(one)
        if not isinstance(value, dict | list):
            yield value

    def carried(one: object) -> bool:
        return one is None or str(one) in told or (isinstance(one, int | float) and float(one) in numbers)

    missing = [one for one in leaves(measured.to_json()) if not isinstance(one, bool) and not carried(one)]
    assert not missing
    assert {line["table"] for line in lines} >= {"pairs", "2x2", "balance", "comparisons", "smallest", "equal length"}
