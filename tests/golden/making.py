"""Makes the golden set: two releases, requests, and what ``score``, ``study`` and ``agree`` say. Nothing of the machine is in a hash."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import canonical_json, digest_bytes
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.prompts import load_prompts

from tests.doubles.forger import honest
from tests.golden.record import DATA, PAGES, Golden

DOCS = Path(__file__).parent.parent.parent / "docs"
WITHOUT = ("--without", "bertscore", "--without", "embedding")
# What tells of the machine, and hashes of what is an entry by itself; also where a manifest tells of another release.
NOT_COMPARED = {"software", "builder", "files", "seal"}
# Of the kinds in ``full.yaml`` and of crossed items, which a configuration asks for beside.
FULL = {"dialogues": 60, "controls": 60, "control_dialogues": 0, "crossed": 60}
STUDY = ("study", "study.csv", "--baseline", "human", "--labels", "Bad,Okay,Good", "--raters", "study_raters.csv")
AGREE = ("agree", "agreement.csv", "--judge", "judge-a")
RELIABILITY = ("agree", "reliability.csv", "--rubric", "lend-an-ear")
# Sums of ten draws of VADER's four decimals lie half-way between two last places, and then the processor decides.
OF_METRICS, OF_JUDGED = (("--metric", "rouge-l", "--metric", one, "--no-cache") for one in ("vader", "chrf"))


def make(folder: Path) -> Golden:
    """Makes all in an empty folder; returns the two lists.

    Raises:
        RuntimeError: if a command fails.
    """
    golden: Golden = {DATA: {}, PAGES: {}}
    # Pages name the command that makes them, with the paths that it was given, which are from here.
    with contextlib.chdir(folder):
        _demo(golden)
        _judged(golden)
        _requests(golden)
        _people(golden)
    return golden


def _demo(golden: Golden) -> None:
    build, release = Path("demo"), Path("demo/release")
    _said("build", "demo", "--out", build)
    _said("release", build, "--out", release, "--version", "0.1.0", *WITHOUT)
    _release("demo", build, release, golden)
    _note(golden, "demo/score.json", _without_machine(_said("score", release, *OF_METRICS, "--attacks", "--fairness", "--json")))
    _note(golden, "demo/score.csv", _without_seal(_said("score", release, *OF_METRICS, "--no-shortcuts", "--csv")))


def _judged(golden: Golden) -> None:
    """A small release with annotations, candidates, crossed items and a withdrawn dialogue; and all that was asked for it."""
    folder = Path("judged")
    release = honest(folder, load_prompts())
    _release("judged", folder / "build", release, golden)
    asked = []
    for path in sorted(folder.glob("*/ledger.sqlite")):
        with Ledger(path, create=False) as ledger:
            asked += list(ledger.query("SELECT kind, key FROM completions"))
    _by_kind("judged/requests", asked, golden)
    for form, compared in (("json", _without_machine), ("csv", _without_seal)):
        _note(golden, f"judged/score.{form}", compared(_said("score", release, *OF_JUDGED, "--judge", "judge/teacher", f"--{form}")))


def _requests(golden: Golden) -> None:
    """What builds would ask: the demo, and sixty dialogues drawn as those of a full release are."""
    raw: dict[str, Any] = yaml.safe_load((data_folder("release") / "full.yaml").read_text(encoding="utf-8")) | FULL
    raw["models"] |= {"crossed": raw["models"]["self_chat"], "crossed_judge": raw["models"]["near"]}
    Path("full-60.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    for name, config in (("demo", "demo"), ("full-60", "full-60.yaml")):
        shown = json.loads(_said("preview", config, "-n", 1000, "--json"))
        _by_kind(f"requests/{name}", [(one["about"]["kind"], one["key"]) for one in shown["requests"]], golden)
        _note(golden, f"requests/{name}/estimates", canonical_json(shown["estimates"]))


def _people(golden: Golden) -> None:
    """What is reckoned from ratings of people."""
    for path in DOCS.glob("*.csv"):
        shutil.copy(path, ".")
    _note(golden, "study.json", _said(*STUDY, "--json", "--page", "study.html"))
    _note(golden, "study.csv", _said(*STUDY, "--csv"))
    _note(golden, "study.html", Path("study.html").read_bytes())
    _note(golden, "agreement.json", _said(*AGREE, "--json"))
    _said(*RELIABILITY, "--page", "reliability.html")
    for name in ("reliability.json", "reliability.html"):
        _note(golden, name, Path(name).read_bytes())


def _release(name: str, build: Path, release: Path, golden: Golden) -> None:
    """All of a release but its PNGs, which show what its SVGs show. What is in ``design`` is one entry."""
    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    software = ", ".join(f"{one} {version}" for one, version in manifest["software"].items())
    _note(golden, f"{name}/outcomes.jsonl", (build / "outcomes.jsonl").read_bytes())
    design = []
    for path in sorted(one for one in release.rglob("*") if one.is_file() and one.suffix != ".png"):
        place, content = path.relative_to(release).as_posix(), path.read_bytes()
        if place.startswith("design/"):
            design.append(f"{place} {digest_bytes(content)}")
        elif place in ("manifest.json", "report/tables.json"):
            _note(golden, f"{name}/{place}", canonical_json(_compared(json.loads(content))))
        else:
            _note(golden, f"{name}/{place}", content.replace(software.encode(), b""))
    _note(golden, f"{name}/design", "\n".join(design))


def _compared(value: Any) -> Any:
    """A value of JSON without what is not compared, at any depth."""
    if isinstance(value, dict):
        return {name: _compared(one) for name, one in value.items() if name not in NOT_COMPARED}
    return [_compared(one) for one in value] if isinstance(value, list) else value


def _without_machine(said: str) -> str:
    """What is said as JSON, in its own form, without what tells of the machine: a seal holds the versions of software."""
    return json.dumps(_compared(json.loads(said)), indent=2, ensure_ascii=False) + "\n"


def _without_seal(said: str) -> str:
    """What is said as CSV without the columns that tell of the machine."""
    text = io.StringIO()
    rows = list(csv.DictReader(io.StringIO(said)))
    names = [name for name in rows[0] if name not in NOT_COMPARED]
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _by_kind(name: str, asked: Iterable[tuple[str, str]], golden: Golden) -> None:
    """An entry a kind of request, of the keys in their order."""
    keys = defaultdict(list)
    for kind, key in asked:
        keys[kind].append(key)
    for kind, some in keys.items():
        _note(golden, f"{name}/{kind}", "\n".join(sorted(some)))


def _note(golden: Golden, entry: str, content: str | bytes) -> None:
    to_look_at = entry.endswith((".html", ".md", ".svg", "croissant.json", "eval.yaml", "LICENSE"))
    golden[PAGES if to_look_at else DATA][entry] = digest_bytes(content.encode() if isinstance(content, str) else content)


def _said(*arguments: object) -> str:
    """What a command prints."""
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        status = main([str(one) for one in arguments])
    if status:
        raise RuntimeError(f"{arguments[0]} exits with {status}: {errors.getvalue()}")
    return said.getvalue()
