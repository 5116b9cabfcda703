"""The packages under ``examples/``: built, installed, and used by name, as their READMEs say."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.dataset import SPLITS
from empathy_eval.evaluation.external.custom_texts import read_texts
from empathy_eval.metrics.lexical import Vader
from empathy_eval.metrics.registry import find
from empathy_eval_ed_reconstruction import fitted_to
from empathy_eval_emotion_rules.metric import query_of
from empathy_eval_emotion_rules.rules import LIKELIHOOD, Case, asks_for_emotions, cases, sentiment

from tests.journeys.test_docs import blocks as blocks_of_docs
from tests.journeys.test_installed import QUIETLY, ROOT, made, run

EXAMPLES = [ROOT / "examples" / name for name in ("emotion_rules", "ed_reconstruction")]


def blocks(place: int, language: str) -> list[str]:
    """The blocks of code of an example's README."""
    text = (EXAMPLES[place] / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What both READMEs need: texts and ratings, those of the documents, tiny models, and weights that were fitted as written."""
    folder = tmp_path_factory.mktemp("mine")
    tiny = runpy.run_path(str(EXAMPLES[0] / "tests" / "conftest.py"))
    tiny["made_classifier"](folder / "models" / "goemotions")
    tiny["made_seq2seq"](folder / "models" / "bart")
    (folder / "replies.jsonl").write_text(blocks_of_docs("own_texts.md", "jsonl")[0])
    (folder / "ratings.csv").write_text(blocks_of_docs("people.md", "csv")[0])
    fitting, module = blocks(1, "python")
    (folder / "mine.py").write_text(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        exec(fitting, {})
        yield folder


def used_by_name(folder: Path, python: Path, environment: Mapping[str, str]) -> None:
    """Scores with both metrics as their READMEs say; both at once, as most of the time goes into loading torch."""
    command = [re.findall(r"--metric (\S+)$", blocks(place, "sh")[-1], re.MULTILINE)[0] for place in (0, 1)]
    program = (python, "-m", "empathy_eval", "score", "replies.jsonl", "--no-cache", "--csv")
    done = subprocess.run(
        [*program, "--metric", command[0], "--metric", command[1]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("emotion rules", "ED reconstruction", "likelihood:bart@", "threshold:-3.1", "emotion=neutral,polarity=vader-"):
        assert part in done.stdout


def test_both_packages_are_built_and_installed_and_used_by_name(folder: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = (Path(sys.executable), "-m", "pip")
    run(tmp_path, *pip, "install", *QUIETLY, "--no-build-isolation", "--target", site, *EXAMPLES)
    assert {path.name for path in site.glob("empathy_eval_*[!o]")} >= {"empathy_eval_emotion_rules", "empathy_eval_ed_reconstruction"}
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    used_by_name(folder, Path(sys.executable), {**os.environ, "PYTHONPATH": path})


def test_classifiers_of_ones_own_go_by_name_and_want_weights_that_were_fitted_with_them(folder: Path) -> None:
    with pytest.raises(InputError, match='was fitted with the readings "emotion=neutral,'):
        find(["mine:MyEd:weights=ed.json"], {})
    texts = read_texts(folder / "replies.jsonl")
    fitted_to(texts.segments, [5, 2, 5, 1, 4, 2], readings=runpy.run_path("mine.py")["Mine"]()).write(folder / "my_ed.json")
    (metric,) = find(["mine:MyEd:weights=my_ed.json"], {}).metrics
    assert "readings:emotion=sad-or-not-1,emotion=neutral" in metric.signature


@pytest.mark.long
def test_the_readmes_hold_in_an_environment_of_its_own(folder: Path, tmp_path: Path) -> None:
    programs = made(tmp_path / "venv")
    pip = (programs / "python", "-m", "pip", "install", *QUIETLY, "--no-build-isolation", "--ignore-installed")
    run(tmp_path, *pip, ROOT, *EXAMPLES)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    used_by_name(folder, programs / "python", environment)


def spanned(shares: Sequence[float]) -> str:
    """The lowest and the highest of shares in per cent, or one where they are the same."""
    ends = list(dict.fromkeys(f"{100 * end(shares):.0f}" for end in (min, max)))
    return f"{' to '.join(ends)} %"


def test_the_figures_of_the_curated_seeds_in_the_readme_are_those_of_their_release(seeds: Path) -> None:
    vader, shares = Vader(), dict[str, float]()
    pairs, controls = (
        [row for split in SPLITS for row in pq.read_table(seeds / "data" / name / f"{split}.parquet").to_pylist()]
        for name in ("pairs", "controls")
    )
    asked, decided = [], []
    queries = [sentiment(vader.score(query_of(row["context"]))) for row in pairs]
    for name in ("empathetic", "apathetic", "reference"):
        felt = [sentiment(vader.score(row[name])) for row in pairs]
        shares[name] = felt.count("positive") / len(pairs)
        both = list(zip(queries, felt, strict=True))
        asked.append(sum(asks_for_emotions(*one) for one in both) / len(pairs))
        decided.append(sum(cases()[Case(one[0], True, one[1], True)] == LIKELIHOOD for one in both) / len(pairs))
    cells = [
        sum(sentiment(vader.score(row[name])) == "positive" for row in controls) / len(controls)
        for name in ("near_empathetic", "empathetic", "apathetic", "far_apathetic")
    ]
    text = " ".join((EXAMPLES[0] / "README.md").read_text().split())
    near, kind, cold, far = (f"{100 * share:.0f} %" for share in cells)
    empathetic, apathetic, reference = (f"{100 * share:.0f} %" for share in shares.values())
    for part in (
        f"Of {len(pairs)} pairs of the demo's release, replies are positive in {empathetic} (empathetic), {apathetic} (apathetic) and "
        f"{reference} (reference) of the cases; of the {len(controls)} with controls in {near} (near-empathetic), {kind} (empathetic), "
        f"{cold} (apathetic) and {far} (far-apathetic).",
        f"in {spanned(asked)} of the pairs, the likelihood in {spanned(decided)}",
    ):
        assert part in text, part
