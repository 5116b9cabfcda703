"""What ``score`` prints."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from empathy_eval.cli import main
from empathy_eval.commands.score import score_csv, score_table
from empathy_eval.evaluation.score import score
from empathy_eval.releases.write import Released


def test_text_json_and_csv_say_the_same(released: tuple[Path, Released], capsys: pytest.CaptureFixture[str]) -> None:
    base = ["score", str(released[0]), "--metric", "rouge-l"]
    assert main(base) == main([*base, "--json"]) == main([*base, "--csv"]) == 0
    said = capsys.readouterr().out
    measured = score(released[0], ["rouge-l"])
    assert score_table(measured) in said and score_csv(measured) in said
    assert json.dumps(measured.to_json(), indent=2, ensure_ascii=False) in said
    lines = list(csv.DictReader(io.StringIO(score_csv(measured))))
    (one,) = (line for line in lines if line["table"] == "pairs")
    assert float(one["value"]) == measured.inversion[0].differences["empathetic - apathetic"].value and one["forced"] == "True"
