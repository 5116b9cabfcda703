"""Fidelity and ablations: every figure of tiny students against scipy on scores that are made again, kills, and bad input."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import empathy_eval as ee
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.dataset import COLUMNS, OPTIONAL, SPLITS, column, file_of
from empathy_eval.metrics.empathy_score.model import read_model, scorer_of
from empathy_eval.metrics.protocol import Segments
from empathy_eval.training.ablations import ABLATION, Ablation
from scipy.stats import pearsonr, rankdata

from tests.doubles.encoders import made_encoder
from tests.training.test_teaching import TEACHER

Row = dict[str, Any]
CELLS = ("near_empathetic", "apathetic", "empathetic", "far_apathetic")
FOLDERS = ("full", "regression-alone", "ranking-alone", "shared-encoder")
ASKED = {"kind": "students", "teacher": TEACHER, "max_tokens": 32, "epochs": 1, "rate": 3e-3}


@pytest.fixture(scope="module")
def release(light: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small release with a scripted teacher's annotations of all texts, and its decisions of the two variants of each pair."""
    folder = Path(shutil.copytree(light, tmp_path_factory.mktemp("judged") / "release"))
    for config in ("pairs", "controls"):
        rows = pq.read_table(file_of(folder, config, "train")).to_pylist()
        held = sorted({row["dialogue_id"] for row in rows})[::2]
        for split in ("train", "test"):
            own = [row for row in rows if (row["dialogue_id"] in held) == (split == "test")]
            pq.write_table(pa.Table.from_pylist(own, COLUMNS[config]), file_of(folder, config, split))
    for split in SPLITS:
        rated, compared = [], []
        for config, variants in (("pairs", ("reference", "apathetic", "empathetic")), ("controls", ("near_empathetic", "far_apathetic"))):
            for row in pq.read_table(file_of(folder, config, split)).to_pylist():
                judged = {"pair_id": row["pair_id"], "dialogue_id": row["dialogue_id"], "teacher": TEACHER, "rubric": "teacher"}
                for variant in variants:
                    for criterion, value in zip(("content", "flow"), rule(row["pair_id"], variant), strict=True):
                        rated.append({**judged, "variant": variant, "criterion": criterion, "sample": 0, "value": value})
                if config == "pairs":
                    both = {"variant_1": "apathetic", "variant_2": "empathetic", "winner": "empathetic", "consistent": True}
                    compared.append({"pair_id": row["pair_id"], "teacher": TEACHER, "rubric": "warmer", "sample": 0, **both})
        for config, own in (("annotations", rated), ("comparisons", compared)):
            (path := file_of(folder, config, split)).parent.mkdir(exist_ok=True)
            pq.write_table(pa.Table.from_pylist(own, OPTIONAL[config]), path)
    return folder


def rule(pair: str, variant: str) -> tuple[float, float]:
    """What the teacher gives a text: (content, flow), by lot of its name."""
    dice = random.Random(f"{pair}:{variant}")
    return round(dice.random(), 2), round(dice.random(), 2)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@pytest.fixture(scope="module")
def ratings(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    rows = [
        f"{pair}:{one},{who},{random.Random(f'{pair}{one}{who}').randint(1, 3)}\n"
        for pair in column(release, "pairs", "pair_id") for one in ("apathetic", "empathetic") for who in "ab"
    ]  # fmt: skip
    path.write_text("item,rater,rating\n" + "".join(rows))
    return path


@pytest.fixture(scope="module")
def found(release: Path, encoder: Path, ratings: Path, tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    out = tmp_path_factory.mktemp("out") / "ablation"
    made = ee.train(release, out, encoder=encoder, ablate=True, alpha=0.25, ratings=ratings, **ASKED)  # type: ignore[arg-type]
    assert isinstance(made, Ablation)
    return made


def scored(release: Path, split: str, folder: Path, variants: dict[str, tuple[str, ...]]) -> dict[tuple[str, str], tuple[float, float]]:
    """By text what students give it, content and flow, as the metric says."""
    texts = {
        (row["pair_id"], one): (row[one], row["context"])
        for config, names in variants.items() for row in pq.read_table(file_of(release, config, split)).to_pylist() for one in names
    }  # fmt: skip
    # All at once and in one order: what stands beside a text in a batch may change its last digits.
    keys = sorted(texts)
    parts = scorer_of(read_model(str(folder))).parts(Segments([texts[one][0] for one in keys], (), [texts[one][1] for one in keys]))
    both = [np.round(parts[name], 4).tolist() for name in ("content", "flow")]
    of: dict[tuple[str, str], tuple[float, float]] = {one: (content, flow) for one, content, flow in zip(keys, *both, strict=True)}
    return of


@pytest.mark.e2e
def test_every_figure_is_what_scipy_says_of_scores_that_are_made_again(found: Ablation, release: Path, ratings: Path) -> None:
    assert found.split == "test"
    variants = {"pairs": ("reference", "apathetic", "empathetic"), "controls": ("near_empathetic", "far_apathetic")}
    rows = {one.row: {name: figure.value for name, figure in one.figures.items()} for one in found.rows}
    assert list(rows) == ["teacher", "full", "without flow", "without content", "regression alone", "ranking alone", "shared encoder"]
    assert sorted(one.name for one in (found.folder / "tiny-seed-42").iterdir()) == sorted(FOLDERS)
    given: dict[tuple[str, str], list[float]] = {}
    for line in ratings.read_text().splitlines()[1:]:
        item, _, value = line.split(",")
        given.setdefault(tuple(item.split(":")), []).append(float(value))  # type: ignore[arg-type]
    r_full = None
    folders = {"without flow": ("full", 0.0), "without content": ("full", 1.0)}
    for name in list(rows)[1:]:
        folder, alpha = folders.get(name, (name.replace(" ", "-"), 0.25))
        texts = scored(release, "test", found.folder / "tiny-seed-42" / folder, variants)
        content, flow = np.array([*texts.values()]).T
        taught = np.array([rule(*one) for one in texts]).T
        # Equal scores are ties, whatever the last digits of a sum.
        score, target = (np.round(one, 6) for one in (alpha * flow + (1 - alpha) * content, 0.25 * taught[1] + 0.75 * taught[0]))
        own = rows[name]
        parts = ("score",) if name in folders else ("content", "flow", "score")
        assert ("flow and content" in own) == ("flow: r" in own) == (name not in folders)
        for part, mine, theirs in (("content", content, taught[0]), ("flow", flow, taught[1]), ("score", score, target)):
            if part not in parts:
                continue
            assert own[f"{part}: r"] == correlation(mine, theirs)
            assert own[f"{part}: rho"] == correlation(rankdata(mine), rankdata(theirs))
            assert own[f"{part}: mean error"] == pytest.approx(np.abs(mine - theirs).mean(), abs=1e-6)
        assert name in folders or own["flow and content"] == correlation(flow, content)
        of = dict(zip(texts, np.round(score, 6), strict=True))
        pairs = column(release, "controls", "pair_id", ["test"])
        duels = [(of[pair, one], of[pair, other]) for pair in pairs for one, other in (CELLS[:2], CELLS[2:])]
        assert own["accuracy"] == pytest.approx(np.mean([(one > other) + (one == other) / 2 for one, other in duels]), abs=1e-6)
        rated = [one for one in texts if one in given]
        r = correlation([of[one] for one in rated], [np.mean(given[one]) for one in rated])
        r_full = r if r_full is None else r_full
        assert own["people: r"] == r
        assert own["drop in r"] == (None if r is None else pytest.approx((r_full.expected - r.expected) / r_full.expected, abs=1e-5))
    assert {one["row"] for one in found.paper} == {"full", "without flow", "without content"}
    assert "0.684" in str(found) and json.loads((found.folder / ABLATION).read_text()) == json.loads(json.dumps(found.to_json()))


def correlation(one: Any, other: Any) -> Any:
    """Pearson's r by scipy, None where one of the two is the same everywhere."""
    return None if min(np.ptp(one), np.ptp(other)) == 0 else pytest.approx(pearsonr(one, other)[0], abs=1e-6)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.e2e
def test_a_killed_ablation_goes_on_to_the_same_bytes_and_trains_nothing_twice(release: Path, encoder: Path, tmp_path: Path) -> None:
    asked = ["train", str(release), "--kind", "students", "--teacher", TEACHER, "--encoder", str(encoder), "--ablate"]
    asked += ["--max-tokens", "32", "--epochs", "1", "--rate", "3e-3"]
    assert main([*asked, "--out", str(tmp_path / "whole")]) == 0
    out = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-m", "empathy_eval", *asked, "--out", str(out)], stdout=-3, stderr=-3)
    last = time.monotonic() + 400
    while not (out / "tiny-seed-42" / "full" / "checksums.txt").is_file() and process.poll() is None and time.monotonic() < last:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / ABLATION).exists()
    made = (out / "tiny-seed-42" / "full" / "model.safetensors").stat().st_mtime_ns
    assert main([*asked, "--out", str(out)]) == 0
    whole, resumed = files(tmp_path / "whole"), files(out)
    whole[ABLATION] = whole[ABLATION].replace(b'"whole"', b'"killed"')
    assert resumed == whole
    assert (out / "tiny-seed-42" / "full" / "model.safetensors").stat().st_mtime_ns == made


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"teacher": None}, "needs a teacher"), ({"kind": "plain"}, "does not apply to the kind plain"), ({"alpha": 2.0}, "--alpha"),
        ({"ablate": False, "alpha": 0.5}, "needs --ablate"), ({"ablate": False, "seed": [1, 2]}, "is given 2 times"),
        ({"rate": 0.0}, "--rate"), ({"rate": float("nan")}, "--rate"), ({"epochs": 0}, "--epochs"), ({"margin": -1.0}, "--margin"),
        ({"rank_weight": -1.0}, "--rank-weight"), ({"seed": [1, 1]}, "is the name of two"), ({"seed": -1}, "--seed"),
        ({"objective": "all"}, "--objective"), ({"flow": "all"}, "--flow"), ({"teacher": "nobody"}, "has no annotations of"),
        ({"split": ["train", "validation", "test"]}, "no split is left out"), ({"ratings": "none.csv"}, "none.csv"),
    ],
)  # fmt: skip
def test_what_cannot_be_ablated_is_refused_before_anything_is_trained(
    release: Path, encoder: Path, tmp_path: Path, more: Row, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        ee.train(release, tmp_path / "out", **{"encoder": encoder, "ablate": True, **ASKED, **more})
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_left_alone(release: Path, encoder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="holds something other"):
        ee.train(release, tmp_path, encoder=encoder, ablate=True, **ASKED)  # type: ignore[arg-type]
