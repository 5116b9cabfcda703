"""Files of scores: long and wide, CSV, TSV and JSONL read alike; what is wrong with one is said at once."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.base import tabular
from empathy_eval.base.errors import MOST_KNOWN, InputError
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.evaluation.external.score_file import PrecomputedScores, read_scores
from empathy_eval.metrics.protocol import Pairs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

IDS = [f"017-00042-t{number:02d}" for number in range(5)]
ALL = (*CELLS, "reference")
SCORE = st.one_of(st.floats(-1e12, 1e12), st.integers(-(10**6), 10**6))
Table = dict[str, dict[str, float]]
TABLES = st.dictionaries(
    st.sampled_from(IDS),
    st.tuples(st.sampled_from([PAIR_VARIANTS, CELLS]), st.booleans()).flatmap(
        lambda one: st.fixed_dictionaries(dict.fromkeys((*one[0], *(["reference"] if one[1] else [])), SCORE))
    ),
    min_size=1,
)


def rows_of(table: Mapping[str, Mapping[str, float]], form: str) -> list[dict[str, object]]:
    if form == "long":
        return [{"pair_id": pair, "variant": name, "score": score} for pair, some in table.items() for name, score in some.items()]
    # A column that no pair has is left out.
    names = [name for name in ALL if any(name in some for some in table.values())]
    return [{"pair_id": pair, **{name: some.get(name) for name in names}} for pair, some in table.items()]


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    text = io.StringIO()
    if path.suffix == ".jsonl":
        text.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(text, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


def read(path: Path, text: str | bytes | None = None) -> PrecomputedScores:
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_scores(path, IDS, IDS)


def looked_up(scores: PrecomputedScores) -> dict[str, list[float]]:
    pairs = Pairs(IDS, ["r"] * len(IDS), {name: ["t"] * len(IDS) for name in ALL})
    return {name: found[:, 0].tolist() for name, found in scores.looked_up(pairs).items()}


def said(path: Path, text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read(path, text)
    return str(caught.value)


def test_a_pair_a_variant_or_a_column_that_is_called_otherwise_names_the_one_that_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    assert f'did you mean "{IDS[1]}"?' in said(path, "pair_id,variant,score\n017-00024-t01,apathetic,1\n")
    assert 'did you mean "apathetic"?' in said(path, f"pair_id,variant,score\n{IDS[0]},apathtic,1\n")
    assert 'did you mean "pair_id"?' in said(path, f"pairid,variant,score\n{IDS[0]},apathetic,1\n")


def test_of_very_many_pairs_none_is_looked_for(tmp_path: Path) -> None:
    ids = [f"018-{number:05d}-t01" for number in range(MOST_KNOWN + 1)]
    (tmp_path / "s.csv").write_text("pair_id,variant,score\n017-00024-t01,apathetic,1\n")
    with pytest.raises(InputError) as caught:
        read_scores(tmp_path / "s.csv", ids, ids)
    assert "is not a pair of this release" in str(caught.value) and "did you mean" not in str(caught.value)


@given(TABLES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_a_table_reads_the_same_long_and_wide_with_commas_with_tabs_and_as_json(tmp_path: Path, table: Table) -> None:
    expected = [[float(table.get(pair, {}).get(name, "nan")) for pair in IDS] for name in ALL]
    for form in ("long", "wide"):
        for suffix in (".csv", ".tsv", ".jsonl"):
            scores = read(written(tmp_path / f"judge{suffix}", rows_of(table, form)))
            np.testing.assert_array_equal([looked_up(scores)[name] for name in ALL], expected)
            assert scores.pair_ids == set(table) and scores.name == "judge"


def test_what_is_beside_scores_is_passed_over(tmp_path: Path) -> None:
    head = '{"pair_id": "017-00042-t00", "why": {"deep": [1, NaN]}, "model": "x", '.replace("NaN", "2")
    text = head + '"apathetic": 1, "empathetic": 2, "near_empathetic": null}\n\n'
    assert looked_up(read(tmp_path / "a.jsonl", text))["empathetic"][0] == 2
    text = "pair_id,score,variant,reference\n017-00042-t00,1,apathetic,I hear you\n017-00042-t00,2,empathetic,I hear you\n"
    assert looked_up(read(tmp_path / "a.csv", text))["empathetic"][0] == 2
    assert looked_up(read(tmp_path / "a.CSV", "\ufeff" + text))["apathetic"][0] == 1


@pytest.mark.parametrize("name", ["judge.txt", "judge", "judge.xlsx", "judge.json"])
def test_another_suffix_is_refused_with_those_that_are_read(name: str, tmp_path: Path) -> None:
    assert "scores are read from .csv, .tsv and .jsonl" in said(tmp_path / name, "pair_id,variant,score\n")


def test_all_that_is_wrong_with_lines_of_json_is_said_at_once(tmp_path: Path) -> None:
    pair, long = '{"pair_id": "017-00042-t00", ', '"variant": "empathetic", "score": '
    lines = [
        pair + '"score": 1, "score": 2, "variant": "apathetic"}', pair + long + "[1]}", pair + long + "NaN}", pair + long + "1e999}",
        pair + long + '"0.5"}', pair + long + "true}", "[1, 2]", pair + '"empathic": 1}', pair + long, pair + '"empathetic": {"a": 1}}',
        '{"pair_id": 17, "apathetic": 1, "empathetic": 2}', '{"pair_id": "999-00001-t01", "apathetic": 1, "empathetic": 2}',
        "[" * 100_000, pair + '"apathetic": "' + "x" * tabular.LONGEST + '"}', pair + '"variant": "kind", "score": 1}',
        pair + long + "null}",
    ]  # fmt: skip
    found = said(tmp_path / "bad.jsonl", "\n".join(lines))
    for number, part in enumerate(
        (
            'has "score" twice in one object', "score: [1] is not of type number", "holds NaN", "holds the number 1e999",
            'score: "0.5" is not of type number', "score: true is not of type number", "is not an object: [1, 2]",
            "has no column variant, score", "is not JSON", 'empathetic: {"a": 1} is not of type number', "pair_id: 17 is not of type",
            '"999-00001-t01" is not a pair of this release', "is n", "is a line of more than", 'variant: "kind" is not known',
            "score: null is not of type number",
        ), 1,
    ):  # fmt: skip
        assert f"line {number}: {part}" in found, (number, part, found[:3000])
    assert found.count("pair_id: 17") == found.count('"999-00001-t01"') == 1


def test_a_byte_order_mark_and_bytes_that_are_no_utf_8_are_named(tmp_path: Path) -> None:
    line = '{"pair_id": "017-00042-t00", "apathetic": 1, "empathetic": 2}\n'
    assert "line 1: begins with a byte order mark" in said(tmp_path / "a.jsonl", "\ufeff" + line)
    assert "is not UTF-8" in said(tmp_path / "a.jsonl", line.encode() + b"\xff\n")
    assert "a.tsv: is not UTF-8" in said(tmp_path / "a.tsv", b"\xff")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "folder.jsonl")


def test_a_wide_table_that_is_wrong_says_where(tmp_path: Path) -> None:
    head = "pair_id,apathetic,empathetic,reference\n"
    for rows, part in (
        (
            "017-00042-t00,0,5,0,7",
            "line 2: has 5 cells, but the header has 4\n  Fix: quote cells that hold commas, and write 0.5 with a decimal point",
        ),
        ("017-00042-t00,1,warm,", 'line 2: empathetic: "warm" is not of type number'),
        ("017-00042-t00,1,nan,", 'line 2: empathetic: "nan" is not of type number'),
        ("017-00042-t00,1,,", '"017-00042-t00" has no score of empathetic'),
        ("017-00042-t00,,,1", '"017-00042-t00" has no score of apathetic and empathetic'),
        ("017-00042-t00,1,2,\n017-00042-t00,1,2,", 'line 3: "017-00042-t00", apathetic was scored before'),
        ("x" * 10 + ",1,2,3", 'line 2: pair_id: "xxxxxxxxxx" does not match'),
        ("017-00042-t00,,,", "holds no score"),
        ("y" * (tabular.LONGEST + 1), "line 2: is a line of more than"),
    ):
        assert part in said(tmp_path / "a.csv", head + rows), part
    assert "has the column empathetic twice" in said(tmp_path / "a.csv", "pair_id,empathetic,apathetic,empathetic\n")
    assert "has no column pair_id" in said(tmp_path / "a.csv", "pair,empathetic,apathetic\n")
    assert "has no column variant, score\n  Fix: name the columns in the first line: pair_id,variant,score, or pair_id,apathetic" in said(
        tmp_path / "a.csv", "pair_id,mood\n"
    )


def test_of_very_many_problems_the_first_hundred_are_reported(tmp_path: Path) -> None:
    assert "has 50 more problems" in said(tmp_path / "a.jsonl", "[]\n" * 150)
