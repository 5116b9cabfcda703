"""Data sets of dialogues beside each other: every figure by hand, and files in the forms in which ESConv and EmpatheticDialogues are."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.dataset import column
from empathy_eval.metrics.lexical import Vader

SAID = ["I lost my job", "I lost", "Lost your job"]
ESCONV = [
    {"emotion_type": "sadness", "problem_type": "job crisis", "situation": "x", "dialog": [
        {"speaker": "seeker", "annotation": {}, "content": SAID[0]},
        {"speaker": "supporter", "annotation": {"strategy": "Question"}, "content": SAID[2]},
    ]},
    {"emotion_type": "fear", "problem_type": "job crisis", "situation": "y", "dialog": [
        {"speaker": "seeker", "annotation": {"feedback": "4"}, "content": SAID[1]},
        {"speaker": "supporter", "annotation": {"strategy": "Others"}, "content": "Yes"},
    ]},
]  # fmt: skip
DIALOGUES = """\
conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags
hit:0_conv:1,1,sentimental,p,1,I lost_comma_ badly,5|5|5_2|2|5,
hit:0_conv:1,2,sentimental,p,0,Oh no,5|5|5_2|2|5,
hit:0_conv:1,3,sentimental,p,1,Yes,5|5|5_2|2|5,
hit:1_conv:2,1,afraid,p,3,Help,5|5|5_2|2|5,
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_figures_of_esconvs_form_are_those_by_hand(tmp_path: Path) -> None:
    found = ee.describe(written(tmp_path / "ESConv.json", json.dumps(ESCONV)))
    (one,) = found.sets
    assert (one.dialogues, one.utterances, one.turns, one.words) == (2, 4, 2.0, 2.5)
    assert (one.strategies, one.scenarios) == (2, 1)
    seeker, helper = one.roles["seeker"], one.roles["helper"]
    assert (seeker.turns, seeker.words, helper.turns, helper.words) == (2, 3.0, 2, 2.0)
    # The helpers' 4 words are the budget: of the seekers' these are "i lost my job", of the helpers' "lost your job" and "yes".
    assert found.budget == 4
    assert seeker.distinct == {1: 1.0, 2: 1.0} and helper.distinct == {1: 1.0, 2: 1.0}
    assert seeker.sentiment == pytest.approx(sum(map(Vader().score, SAID[:2])) / 2, abs=1e-6)
    paper = {row.name: row for row in found.paper}
    assert (paper["Empathy-Eval (paper)"].dialogues, paper["ESConv (paper)"].strategies, paper["ExTES (paper)"].words) == (30633, 8, 26.0)


def test_the_figures_of_empathetic_dialogues_form_are_those_by_hand(tmp_path: Path) -> None:
    (one,) = ee.describe(written(tmp_path / "train.csv", DIALOGUES)).sets
    assert (one.dialogues, one.utterances, one.turns, one.words) == (2, 4, 2.0, 1.75)
    assert (one.strategies, one.scenarios) == (None, 2)
    assert (one.roles["seeker"].turns, one.roles["helper"].turns) == (3, 1)


def test_repeated_words_are_counted_once_within_the_budget_of_all(tmp_path: Path) -> None:
    same = {"messages": [{"role": "user", "content": "no no no no"}, {"role": "assistant", "content": "yes and yes and no"}]}
    short = {"turns": [{"role": "seeker", "text": "one two three"}, {"role": "helper", "text": "one two three four", "strategy": "S"}]}
    paths = [written(tmp_path / f"{name}.jsonl", json.dumps(row) + "\n") for name, row in (("same", same), ("short", short))]
    found = ee.describe(paths)
    assert found.budget == 3
    first, second = found.sets
    assert first.roles["seeker"].distinct == {1: pytest.approx(1 / 3, abs=1e-6), 2: 0.5}
    assert first.roles["helper"].distinct == {1: pytest.approx(2 / 3, abs=1e-6), 2: 1.0}
    assert second.roles["helper"].distinct == {1: 1.0, 2: 1.0} and second.strategies == 1
    again = ee.describe(paths)
    assert again.to_json() == found.to_json()


def test_a_release_is_described_as_its_rows_say_in_every_form(light: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = ee.describe(light).sets
    turns = column(light, "dialogues", "turns")
    assert (one.dialogues, one.utterances) == (len(turns), sum(map(len, turns)))
    assert one.strategies == len({turn["strategy"] for some in turns for turn in some if turn["strategy"]})
    for form in ("--json", "--csv", "--latex", "--markdown"):
        assert main(["describe", str(light), form]) == 0
        printed = capsys.readouterr().out.replace("\\allowbreak{}", "")
        if form == "--csv":
            rows = {(row["role"], row["figure"]): row["value"] for row in csv.DictReader(io.StringIO(printed)) if row["data"] == one.name}
            assert float(rows["", "words"]) == one.words and float(rows["helper", "distinct-2"]) == one.roles["helper"].distinct[2]
        elif form == "--json":
            assert json.loads(printed)["sets"][0]["utterances"] == one.utterances
        else:
            assert "30,633" in printed and one.name.split("-")[0] in printed


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "x", "is neither a folder nor"),
        ("a.json", "{}", "is not a list"),
        ("a.json", "[", "is not JSON"),
        ("a.json", "[]", "holds no dialogue"),
        ("a.json", '[{"dialog": []}]', "dialogue 1"),
        ("a.json", '[{"dialog": [{"speaker": "ghost", "content": "x"}]}]', "ghost"),
        ("a.jsonl", "", "holds no dialogue"),
        ("a.jsonl", "no\n", "line 1"),
        ("a.jsonl", '{"turns": [{"role": "seeker"}]}\n', "line 1"),
        ("a.jsonl", '{"turns": [{"role": "seeker", "text": 5}]}\n', "line 1"),
        ("a.csv", "conv_id,utterance\n", "has no column utterance_idx, context"),
        ("a.csv", "conv_id,utterance_idx,context,utterance\nc,one,sad,Hi\n", "utterance_idx"),
        ("a.csv", "conv_id,utterance_idx,context,utterance\na,1,s,x\nb,1,s,x\na,2,s,x\n", "not together"),
    ],
)
def test_what_is_no_file_of_dialogues_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ee.describe(written(tmp_path / name, text))


def test_two_of_one_name_and_several_faults_are_reported(tmp_path: Path) -> None:
    row = '{"turns": [{"role": "seeker", "text": "a b"}]}\n'
    (tmp_path / "b").mkdir()
    with pytest.raises(InputError, match="is the name of two data sets"):
        ee.describe([written(tmp_path / "a.jsonl", row), written(tmp_path / "b" / "a.jsonl", row)])
    with pytest.raises(InputError) as caught:
        ee.describe(written(tmp_path / "c.jsonl", "no\n" + row + "{}\n"))
    assert "line 1" in str(caught.value) and "line 3" in str(caught.value)
