"""A forger without scruples: what is changed in a release is made consistent again by the program's own means, and sealed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from empathy_eval.base.files import write_whole
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.text import edit_ratio, overlap
from empathy_eval.commands.annotate import annotate
from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.completions.models.toxicity_scorer import load_scorer
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import SAMPLES_PER_CANDIDATE, ToxicityConfig, load_configuration
from empathy_eval.design.contrasts import CONTROLS
from empathy_eval.design.dataset import SPLITS, TEXT_HASH, configs_of, file_of
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.manifest import file_hashes, manifest_text, seal_manifest
from empathy_eval.releases.assemble.rows import preference_rows
from empathy_eval.releases.assemble.write import release
from empathy_eval.reports.documents import release_documents
from empathy_eval.reports.explorer import PAGE, explore_page
from empathy_eval.reports.report import measure_release, release_metrics, write_report

from tests.conftest import copy_world, demo_file
from tests.doubles.judges import Judge
from tests.doubles.telling import WORDS

Row = dict[str, Any]
# Of every split, with crisis language in one.
SOME = ("003", "005", "007", "017", "021", "055")
WITHDRAWN = {"dialogue_id": "007-seed", "reason": "taken out to show how it is done", "date": "2026-02-28", "kind": "error"}


class Second(SeedBank):
    """A seed bank whose later candidates say a little more."""

    endpoint, name = "loopback", "twice-said"

    async def complete(self, request: Request) -> Completion:
        answer = await super().complete(request)
        more = " That much is plain." if request.sample // SAMPLES_PER_CANDIDATE else ""
        return replace(answer, text=json.dumps({"text": json.loads(answer.text)["text"] + more}, ensure_ascii=False))


def honest(folder: Path, prompts: Prompts) -> Path:
    """A release in which there is everything: chosen candidates, crossed items, what judges said, a withdrawn dialogue."""
    catalogue = load_catalogue(copy_world(folder / "scenarios", SOME))
    given = {"kind": "given", "model": "twice-said", "endpoint": "loopback"}
    config = load_configuration(
        demo_file(
            folder, models={"self_chat": {"kind": "seed-bank"}, "near": given, "far": given}, candidates=2, word_list=str(WORDS),
            report={"metrics": ["bleu", "length"], "bootstrap": 10}, withdrawn=[WITHDRAWN],
        )
    )  # fmt: skip
    model = Second(catalogue)
    build(Recipe(config, catalogue, prompts).with_custom({"near": model, "far": model}), folder / "build")
    release(folder / "build", folder / "plain", "0.1.0")
    for rubric in ("teacher", "warmer", "strategies"):
        annotate(folder / "plain", folder / rubric, rubric=rubric, model=Judge(), turns=8)
    judged = [folder / rubric for rubric in ("teacher", "warmer", "strategies")]
    release(folder / "build", folder / "release", "0.1.0", date="2026-03-01", annotations=judged)
    return folder / "release"


class Forger:
    """A copy of a release, and the ways to change it."""

    def __init__(self, original: Path, folder: Path) -> None:
        self.folder = Path(shutil.copytree(original, folder, symlinks=True))
        self.facts: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))
        self.sealing = True

    # What is changed.

    def change(self, path: Path, change: Callable[[list[Row]], list[Row] | None]) -> None:
        """Rows of a file; what is returned takes their place."""
        table = pq.read_table(path)
        rows = table.to_pylist()
        rows = made if (made := change(rows)) is not None else rows
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path, compression="zstd")

    def each(self, config: str, change: Callable[[Row], object]) -> None:
        """Every row of a config, as it is in each split."""

        def all_of_them(rows: list[Row]) -> None:
            for row in rows:
                change(row)

        for path in self.paths(config):
            self.change(path, all_of_them)

    def keep(self, config: str, wanted: Callable[[Row], bool]) -> None:
        """The rows of a config that are wanted, and no others."""
        for path in self.paths(config):
            self.change(path, lambda rows: [row for row in rows if wanted(row)])

    def paths(self, config: str) -> list[Path]:
        """The files of a config; ``provenance`` and ``candidates`` have one."""
        alone = self.folder / f"{config}.parquet"
        return [alone] if alone.is_file() else [file_of(self.folder, config, split) for split in SPLITS]

    def rows(self, config: str) -> Iterator[Row]:
        """All rows of a config."""
        for path in self.paths(config):
            yield from pq.read_table(path).to_pylist()

    def say(self, old: str, new: str) -> None:
        """A text exchanged wherever it stands in a table."""
        for path in sorted(self.folder.rglob("*.parquet")):
            self.change(path, lambda rows: [_said(row, old, new) for row in rows])

    def write(self, name: str, change: Callable[[str], str]) -> None:
        """A text file of the release; a change that changes nothing is a mistake of the test."""
        path = self.folder / name
        before = path.read_text(encoding="utf-8")
        after = change(before)
        assert after != before, f"nothing to forge in {name}"
        path.write_text(after, encoding="utf-8", newline="\n")

    # What is made consistent.

    def derive(self, toxicity: bool = True) -> None:
        """All that follows from texts: measures, scores, preferences, copies, hashes."""
        pairs = {}
        scored = self.facts["configuration"]["checks"]["toxicity"]

        def measured(row: Row) -> None:
            row["apathetic_edit_ratio"] = edit_ratio(row["reference"], row["apathetic"])
            row["empathetic_overlap"] = overlap(row["reference"], row["empathetic"])
            pairs[row["pair_id"]] = row
            if toxicity and scored != "none":
                score = load_scorer(ToxicityConfig(**scored))
                row["toxicity"] = {name: round(float(score([row[name]])[0]), 4) for name in row["toxicity"]}

        def controlled(row: Row) -> None:
            row |= {name: value for name, value in pairs[row["pair_id"]].items() if name in row}
            for name in CONTROLS:
                row[f"{name}_edit_ratio"] = edit_ratio(row["reference"], row[name])
                row[f"{name}_overlap"] = overlap(row["reference"], row[name])

        self.each("pairs", measured)
        self.each("controls", controlled)
        preferred = [dict(preference_rows(row)) for config in ("pairs", "controls") for row in self.rows(config)]
        for config in ("preferences", "preferences_near", "preferences_far"):
            by_pair = {one[config]["pair_id"]: one[config] for one in preferred if config in one}
            self.each(config, lambda row, known=by_pair: row.update(known.get(row["pair_id"], {})))  # type: ignore[misc]
        texts = {(row["pair_id"], name): row[name] for config in ("pairs", "controls") for row in self.rows(config) for name in row}

        def hashed(row: Row) -> None:
            if row.get(TEXT_HASH):
                row[TEXT_HASH] = digest_bytes(str(texts.get((row["pair_id"], row["what"]), "")).encode())

        self.each("provenance", hashed)

    def counted(self) -> None:
        """The counts of the manifest, and with them what the summary says of accepted ones."""
        for config in configs_of(self.facts["counts"]):
            for split in SPLITS:
                self.facts["counts"][config][split] = pq.read_metadata(file_of(self.folder, config, split)).num_rows

    def reported(self) -> None:
        """The program's own report, figures, explorer, card, changelog and description, of what was forged."""
        self.counted()
        facts = {name: value for name, value in self.facts.items() if name not in ("files", "seal")}
        shutil.rmtree(self.folder / "report")
        report = measure_release(self.folder, facts, release_metrics(facts)[0])
        write_report(report, self.folder / "report", facts)
        write_whole(self.folder / PAGE, explore_page(self.folder, facts))
        for name, text in release_documents(self.folder, facts, report).items():
            write_whole(self.folder / name, text)

    def seal(self) -> None:
        """All hashes, and the seal. The files that are named are those that are there."""
        if not self.sealing:
            return
        path = self.folder / "manifest.json"
        path.unlink()
        self.facts["files"] = file_hashes(self.folder)
        path.write_text(manifest_text(seal_manifest(self.facts)), encoding="utf-8")


def _said(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _said(one, old, new) for name, one in value.items()}
    if isinstance(value, list):
        return [_said(one, old, new) for one in value]
    return value.replace(old, new) if isinstance(value, str) and old in value else value
