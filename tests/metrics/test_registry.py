"""Metrics by name: built in, from an installed package, from a module; and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from empathy_eval import cli
from empathy_eval.base.errors import InputError
from empathy_eval.design.configuration import load_configuration
from empathy_eval.metrics.protocol import Pairs, Segments
from empathy_eval.metrics.registry import BUILT_IN, default_names, find, known, typed_settings
from empathy_eval.metrics.scoring import statistics_of
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import demo_file

METRIC = """
from empathy_eval.metrics.protocol import MeanMetric


class Warmth(MeanMetric):
    name, signature, reads = "{label}", "words:warm", ()

    def score(self, text):
        return float("warm" in text)
"""


def install(folder: Path, *packages: str) -> Path:
    """Lets pip install tiny packages, made as wheels here, into a folder of their own; each offers ``warmth``, or what is after a colon."""
    folder.mkdir(exist_ok=True)
    wheels = [str(_wheel(folder, package, name or "warmth")) for package, _, name in (one.partition(":") for one in packages)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(folder / "site"), *wheels], check=True, capture_output=True)
    return folder / "site"


def _wheel(folder: Path, package: str, name: str) -> Path:
    module, info = package.replace("-", "_"), f"{package.replace('-', '_')}-1.0.dist-info"
    files = {
        f"{module}.py": METRIC.format(label="Warmth"),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[empathy_eval.metrics]\n{name} = {module}:Warmth\n",
    }
    wheel = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])}.items():
            archive.writestr(path, text)
    return wheel


def refused(*names: str) -> str:
    with pytest.raises(InputError) as caught:
        find(names, {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("ROUGE-L", "rouge-l"), ("BLEU-4", "bleu"), ("BERTScore F1", "bertscore"), ("vadr", "vader"), ("bertscore:layr=5", "layer")],
)
def test_an_unknown_name_or_setting_names_the_one_that_is_meant_also_by_what_tables_print(typed: str, meant: str) -> None:
    assert refused(typed).endswith(f'; did you mean "{meant}"?')


def test_what_is_like_no_name_names_none() -> None:
    assert "did you mean" not in refused("xyzzy")


def test_every_built_in_name_is_a_metric_or_a_diversity_with_a_signature() -> None:
    found = find(default_names({}), {})
    assert [metric.name for metric in found.metrics] == ["BLEU-4", "ROUGE-L", "METEOR", "chrF", "VADER", "length"]
    assert [diversity.name for diversity in found.diversities] == ["Dist-1", "Dist-2", "Dist-4"]
    assert all(metric.signature for metric in found.metrics) and all(diversity.signature for diversity in found.diversities)
    assert "synonyms:none" in found.metrics[2].signature


def test_bertscore_is_in_a_report_only_where_its_model_is_configured() -> None:
    settings = {"bertscore": {"model": "all-MiniLM-L6-v2", "layer": 5}}
    plain = [name for name in BUILT_IN if not name.startswith(("empathyscore", "sentlink", "nll"))]
    assert default_names(settings) == plain and "bertscore" not in default_names({})
    assert "layer:5" in find(["bertscore"], settings).metrics[0].signature


@pytest.mark.e2e
def test_a_strangers_package_adds_a_metric_and_its_faults_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "warm-words"))
    assert known()["warmth"] == ["warm-words"]
    found = find(["warmth", "rouge-l"], {})
    scored = statistics_of(found.metrics, Pairs(["p1", "p2"], ["r", "r"], {"near": ["a warm word", "cold"]}))
    assert scored["Warmth"].rows["near"].tolist() == [[1, 1], [0, 1]]


@pytest.mark.e2e
def test_two_packages_with_one_name_are_both_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path / "one", "warm-words", "other-bleu:bleu"))
    monkeypatch.syspath_prepend(install(tmp_path / "two", "kind-words"))
    said = refused("warmth", "bleu")
    assert "is offered by kind-words and by warm-words" in said and "is offered by empathy-eval and by other-bleu" in said


def test_a_module_under_development_is_found_where_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_warmth.py").write_text(METRIC.format(label="mine"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    cli.main(["ledger", "show", "nowhere"])  # the command line looks there, a call from Python changes no path
    (metric,) = find(["my_warmth:Warmth"], {}).metrics
    assert metric.name == "mine" and metric.statistics(Segments(["warm"], ["r"])).tolist() == [[1, 1]]


SETTINGS = """
from empathy_eval.metrics.protocol import MeanMetric


class Counted(MeanMetric):
    name, reads = "counted", ()

    def __init__(self, word="warm", times=1, strict=False):
        self.signature = f"word:{word}|times:{times}|strict:{strict}"

    def score(self, text):
        return 1.0
"""


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "counted_metrics.py").write_text(SETTINGS)
    monkeypatch.syspath_prepend(tmp_path)
    return "counted_metrics:Counted"


def signature(name: str, settings: dict[str, Any] | None = None) -> str:
    (metric,) = find([name], settings or {}, own=[name]).metrics
    return metric.signature


def test_settings_of_the_configuration_make_the_metric_and_those_that_are_typed_go_over_them(counted: str) -> None:
    settings = {"metrics": [counted], counted: {"word": "kind", "times": 2}}
    assert signature(counted, settings) == "word:kind|times:2|strict:False"
    (metric,) = find([f"{counted}:times=3,strict=true"], settings, own=[counted]).metrics
    assert metric.signature == "word:kind|times:3|strict:True"
    assert "layer:5" in find(["bertscore:layer=5"], {}).metrics[0].signature
    assert signature(f"{counted}:word='1, \"2\" =3'") == 'word:1, "2" =3|times:1|strict:False'


@given(st.text("ab,=:'\" ", max_size=8), st.integers(), st.booleans())
def test_every_text_in_quotes_is_read_as_it_is(text: str, number: int, flag: bool) -> None:
    typed = f"m:N:a={json.dumps(text)},b={number},c={str(flag).lower()}"
    assert typed_settings(typed) == ("m:N", {"a": text, "b": number, "c": flag})


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("counted_metrics:Counted:wrod=x", 'metric "counted_metrics:Counted": takes no "wrod"\n  Fix: it takes word, times, strict'),
        ("length:unit=letter", 'length: has unknown "unit"\n  Fix: use one of language'),
        ("rouge-l:language=German", '"German" does not match'),
        ("bertscore:layr=5", 'has unknown "layr"\n  Fix: use one of against, layer, model'),
        ("bertscore:layer=0", "bertscore: layer: 0 is out of range"),
        ("meteor:synonyms=all", '"all" is not known\n  Fix: use one of none, wordnet'),
        ("dist-1:budget=many", 'dist-1: budget: "many" is not of type integer'),
        ("bertscore:layer", 'metric "bertscore:layer": '),
        ("layer=5", '"layer=5" is not a setting\n  Fix: write NAME:key=value'),
        ("bertscore:layer=5,", '"layer=5," is not a setting'),
        ("bertscore:layer=5,fast", '"fast" is not a setting'),
        ("bertscore:layer=", '"layer=" is not a setting'),
        ("bertscore:layer=[5", 'layer: "[5" cannot be read'),
        ("bertscore:layer={}", 'layer: "{}" is not a number'),
        ("bertscore:layer=5,layer=6", 'has "layer" twice'),
        ("bertscore:layer=2020-01-01", '"2020-01-01" is not a number, true, false or a text'),
    ],
)
def test_a_setting_that_is_wrong_is_quoted(typed: str, said: str, counted: str) -> None:
    assert said in refused(typed)


def test_settings_of_no_metric_in_the_list_are_refused_with_the_names_that_are(tmp_path: Path) -> None:
    report = {"metrics": ["bleu", "my:Mine"], "my:Mine": {"most": [1, {"a": None}]}, "bootstrap": 10}
    load_configuration(demo_file(tmp_path, report=report))
    with pytest.raises(InputError, match='report: has unknown "my:Mien"\n  Fix: use one of bleu, my:Mine, metrics, '):
        load_configuration(demo_file(tmp_path, report={**report, "my:Mien": {"most": 1}}))
    for odd, said in (
        ({"my:Mine": {"day": date(2020, 1, 1)}}, "my:Mine: day"), ({"my:Mine": {"days": [date(2020, 1, 1)]}}, "my:Mine: days"),
        ({"my:Mine": 3}, "my:Mine: 3 is not of type object"), ({"metrics": ["my:Mine:most=3"]}, "does not match"),
        ({"my:Mine": {"no name": 1}}, "my:Mine"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            load_configuration(demo_file(tmp_path, report={**report, **odd}))


def test_what_cannot_be_used_is_refused_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        METRIC.format(label="BLEU-4")
        + "\n\nclass Odd(Warmth):\n    name, reads = 'odd', ('mood',)\n\n\ndef broken():\n    raise ZeroDivisionError('oh')\n"
    )
    (tmp_path / "odd_metrics.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    said = refused("bleau", "no_such_module:M", "odd_metrics:broken", "odd_metrics:Odd", "pathlib:Path", "bleu", "odd_metrics:Warmth")
    for part in (
        'metric "bleau": is not known',
        "use one of bertscore, bleu, chrf",
        'metric "no_such_module:M": cannot be loaded: ModuleNotFoundError',
        'cannot be loaded: ZeroDivisionError: "oh"',
        "reads 'mood', which no pair has",
        'metric "pathlib:Path": has no signature, places',
        'metric "BLEU-4": is the name of two metrics',
    ):
        assert part in said
