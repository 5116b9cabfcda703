"""What all results have in common: they name what they are of in every form, and print themselves."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pandas as pd
import pytest
from empathy_eval.base.printed import MOST_SIGNS, truncated
from empathy_eval.base.version import __version__
from empathy_eval.cli import main
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.provenance import KEYS

ROOT = Path(__file__).parent.parent.parent
STUDY, AGREEMENT = (str(ROOT / "docs" / name) for name in ("study.csv", "agreement.csv"))
OF_RELEASES: tuple[tuple[str, ...], ...] = (
    ("score", "RELEASE", "--metric", "length", "--metric", "vader", "--split", "train", "--no-cache"),
    ("shortcuts", "RELEASE"), ("report", "RELEASE", "--out", "OUT", "--no-cache"), ("diff", "RELEASE", "RELEASE"),
    ("train", "RELEASE", "--out", "OUT"),
)  # fmt: skip
OF_FILES: tuple[tuple[str, ...], ...] = (
    ("study", STUDY, "--baseline", "human", "--labels", "Bad,Okay,Good", "--permutations", "20"), ("agree", AGREEMENT, "--resamples", "20"),
    ("score", "OWN", "--metric", "length", "--no-cache"), ("score", "OWN", "--metric", "length", "--ratings", "RATINGS", "--no-cache"),
)  # fmt: skip


@pytest.fixture
def said(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints of a release and of files of one's own."""
    (tmp_path / "own.jsonl").write_text(
        "\n".join(json.dumps({"item": f"a{i}", "context": f"c{i}", "reply": "so " * i}) for i in range(1, 6))
    )
    rows = [f"a{i},{rater},{(i * place) % 5 + 1}" for i in range(1, 6) for place, rater in enumerate(("ann", "bob"), 1)]
    (tmp_path / "ratings.csv").write_text("\n".join(["item,rater,rating", *rows]))
    places = {"RELEASE": light, "OUT": tmp_path / "out", "OWN": tmp_path / "own.jsonl", "RATINGS": tmp_path / "ratings.csv"}

    def run(*arguments: str, **other: Path) -> str:
        capsys.readouterr()
        assert main([str({**places, **other}.get(one, one)) for one in arguments]) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.e2e
@pytest.mark.parametrize("arguments", OF_RELEASES, ids=lambda one: one[0])
def test_a_table_of_a_release_names_it_in_text_and_json(arguments: tuple[str, ...], light: Path, said: Callable[..., str]) -> None:
    manifest, split = read_manifest(light), "train" if arguments[0] in ("score", "train") else "train+validation+test"
    told = json.loads(said(*arguments, "--json"))["provenance"]
    of = {name: told[name] for name in ("release", "version", "seal", "split", "software")}
    known = {"release": manifest["name"], "version": manifest["version"], "seal": manifest["seal"]}
    assert of == {**known, "split": split, "software": f"empathy-eval {__version__}"}
    counts = manifest["counts"]["pairs"]
    assert told["pairs"] == (counts["train"] if split == "train" else sum(counts.values())) and isinstance(told["controls"], int)
    assert "settings" in told and str(light) not in json.dumps(told)
    first = said(*arguments).splitlines()[0]
    assert f"{manifest['name']} {manifest['version']}, seal {manifest['seal'][:15]}; {split}: " in first and f"{__version__}" in first


@pytest.mark.parametrize("arguments", OF_FILES, ids=lambda one: "-".join(one[:1] + one[4:5]))
def test_a_table_of_files_names_them_by_their_hash(arguments: tuple[str, ...], said: Callable[..., str], tmp_path: Path) -> None:
    told = json.loads(said(*arguments, "--json"))["provenance"]
    names = [Path({"OWN": "own.jsonl", "RATINGS": "ratings.csv"}.get(one, one)).name for one in arguments]
    files = [name for name in names if name.endswith((".csv", ".jsonl"))]
    assert [one["name"] for one in told["files"]] == files and all(len(one["sha256"]) == 64 for one in told["files"])
    assert told["release"] is None and told["software"] == f"empathy-eval {__version__}" and told["settings"]
    first = said(*arguments).splitlines()[0]
    assert all(f"{one['name']}, sha256 {one['sha256'][:12]}" in first for one in told["files"])
    assert str(tmp_path) not in json.dumps(told)


@pytest.mark.e2e
@pytest.mark.parametrize("arguments", [OF_RELEASES[0], OF_FILES[0], OF_FILES[2], OF_FILES[3]], ids=lambda one: "-".join(one[:1] + one[4:5]))
def test_every_row_of_the_csv_names_what_it_is_of_and_pandas_reads_it_without_options(
    arguments: tuple[str, ...], said: Callable[..., str]
) -> None:
    table = said(*arguments, "--csv")
    told = json.loads(said(*arguments, "--json"))["provenance"]
    frame = pd.read_csv(io.StringIO(table))
    assert tuple(frame.columns[: len(KEYS)]) == KEYS and len(frame) == len(list(csv.DictReader(io.StringIO(table))))
    for row in csv.DictReader(io.StringIO(table)):
        assert {name: row[name] for name in KEYS[:4]} == {name: told[name] or "" for name in KEYS[:4]}
        assert json.loads(row["settings"]) == told["settings"] and row["software"] == told["software"]
        assert row["files"] == "; ".join(f"{one['name']} sha256:{one['sha256']}" for one in told["files"])


@pytest.mark.e2e
def test_a_release_gives_the_same_bytes_from_any_folder(light: Path, tmp_path: Path, said: Callable[..., str]) -> None:
    shutil.copytree(light, tmp_path / "copy")
    arguments = ("score", "RELEASE", "--metric", "length", "--no-cache", "--no-shortcuts")
    for form in ("--json", "--csv"):
        assert said(*arguments, form) == said(*arguments, form, RELEASE=tmp_path / "copy")


@pytest.mark.e2e
def test_the_folder_of_a_report_says_what_its_tables_are_of(light: Path, tmp_path: Path) -> None:
    made = ee.report(light, tmp_path / "report", cache=False)
    assert made.provenance and json.loads((tmp_path / "report" / "provenance.json").read_text()) == json.loads(
        json.dumps(made.provenance.to_json())
    )
    assert (tmp_path / "report" / "tables.json").read_bytes() == (light / "report" / "tables.json").read_bytes()


def results(light: Path, folder: Path) -> list[Any]:
    scored = ee.score(light, ["length", "vader"], cache=False)
    return [
        scored, ee.shortcuts(light), ee.report(light, folder / "report", cache=False), ee.train(light, folder / "model"),
        ee.study(STUDY, "human", labels=["Bad", "Okay", "Good"], permutations=20), ee.agree(AGREEMENT, resamples=20),
        ee.study_plan(0.3, groups=3, categories=3), ee.diff(light, light),
    ]  # fmt: skip


@pytest.mark.e2e
def test_a_result_prints_as_the_table_of_its_command_and_floods_no_console(light: Path, tmp_path: Path) -> None:
    for one in results(light, tmp_path):
        assert len(repr(one)) < 300 and len(one._repr_html_()) < 5000, type(one)
        assert len(str(one).splitlines()) > 3 and one.provenance.software in str(one)
        assert one._repr_html_().startswith("<pre>") and "<" not in one._repr_html_()[5:-6]


@pytest.mark.e2e
def test_the_headline_is_the_number_to_report(light: Path, tmp_path: Path) -> None:
    measured, audit, made, model, studied, agreement, *_ = results(light, tmp_path)
    assert {name: one.value for name, one in measured.headline.items()} == {
        name: one.accuracy.value for name, one in measured.equal_closeness.items()
    }
    assert "VADER" in measured.headline and made.headline == made.measured.headline and set(model.headline) <= {"validation", "test"}
    assert set(audit.headline) == {one.contrast for one in audit.contrasts if one.line}
    assert set(studied.headline) == {"model-a", "model-b"} and "empathy" in agreement.headline


def test_a_notebook_shows_the_beginning_and_how_much_more_there_is() -> None:
    assert truncated("a\nb") == "a\nb"
    long = truncated("\n".join(["<" * 50] * 500))
    assert len(long.replace("<", "&lt;")) < MOST_SIGNS + 200 and long.splitlines()[-1].startswith("… ")


def test_the_text_of_a_result_does_nothing_to_a_terminal(light: Path) -> None:
    measured = ee.score(light, ["length"], shortcuts=False, cache=False)
    assert isinstance(measured, ee.ReleaseTables)
    odd = replace(measured, inversion=[replace(one, metric="\x1b[31mred") for one in measured.inversion])
    assert "\x1b" not in str(odd) and "\\x1b[31mred" in str(odd)


@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_no_output_of_scores_holds_a_number_that_is_not_finite(form: str, light: Path, tmp_path: Path, said: Callable[..., str]) -> None:
    pairs = [row["pair_id"] for row in ee.load(str(light), "pairs", "train")]
    for name, value in (("flat", lambda place: 1), ("wide", lambda place: (-1) ** place * 1e12)):
        rows = [
            f"{pair},{variant},{value(place + more)}"
            for place, pair in enumerate(pairs)
            for more, variant in enumerate(("apathetic", "empathetic"))
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["pair_id,variant,score", *rows]))
    text = said("score", "RELEASE", "--scores", str(tmp_path / "flat.csv"), "--scores", str(tmp_path / "wide.csv"), "--no-shortcuts", form)
    if form == "--json":
        json.loads(text, parse_constant=pytest.fail)
    else:
        assert not {cell.lower() for row in csv.reader(io.StringIO(text)) for cell in row} & {"nan", "inf", "-inf"}


DOCUMENT = r"""\documentclass{{article}}
\usepackage[T1]{{fontenc}}
\usepackage{{booktabs}}
\begin{{document}}
{tables}
\end{{document}}
"""


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex: texlive-latex-base and, for booktabs, -recommended")
@pytest.mark.parametrize("arguments", (*OF_RELEASES[:2], OF_FILES[1]), ids=lambda one: one[0])
def test_pdflatex_sets_the_tables_that_are_printed_as_latex(arguments: tuple[str, ...], said: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "tables.tex").write_text(DOCUMENT.format(tables=said(*arguments, "--latex")), encoding="utf-8")
    set_ = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(set_, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0 and (tmp_path / "tables.pdf").stat().st_size > 10_000, done.stdout[-2000:]
