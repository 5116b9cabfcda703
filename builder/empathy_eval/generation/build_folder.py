"""Build folders: the configuration they belong to, what their build depends on, and how they are read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.files import whole_folder, write_whole
from empathy_eval.base.hashing import digest, digest_bytes, digest_file
from empathy_eval.base.parsing import read_text
from empathy_eval.base.schemas import check, read_json, schema
from empathy_eval.base.version import __version__
from empathy_eval.completions.models.toxicity_scorer import weights_of
from empathy_eval.design.bundled_definitions import DESIGN, MOST_TOGETHER, TOO_MUCH, definitions_of
from empathy_eval.design.canary import CANARY, canary_warnings, numbered_lines, release_identity
from empathy_eval.design.endpoints import JobConfig
from empathy_eval.design.errata import withdrawn_dialogues, withdrawn_pairs
from empathy_eval.design.quotas import quotas
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.checks.custom import Check
from empathy_eval.generation.outcomes import Candidate, Outcome, Pair

OUTCOMES, BUILD, CONFIGURATION, LEDGER = "outcomes.jsonl", "build.json", "configuration.json", "ledger.sqlite"
FIX_REBUILD = "run the same build again: it replays from the ledger"


def claim_folder(out: Path, config: JobConfig) -> None:
    """Checks that a folder can be used by a job of this configuration.

    Raises:
        InputError: if it is a file, cannot be a folder, or holds another configuration's build or other files.
    """
    try:
        file = out.exists() and not out.is_dir()
    except OSError as error:  # a name that is too long
        raise input_error(out, f"cannot be a folder: {error.strerror}", "name another folder with --out") from error
    if file:
        raise input_error(out, "is a file", "name a folder with --out")
    written = out / CONFIGURATION
    fix = "name another folder with --out; a ledger can be shared with --ledger"
    if written.is_file() and (held := config.mismatch(read_json(written, None, fix))):
        raise input_error(out, held, fix)
    # A ledger alone is no obstacle: it was put there, or the disk was full before anything else could be written.
    if out.is_dir() and not written.is_file() and not all(path.name.startswith(LEDGER) for path in out.iterdir()):
        raise input_error(out, "is not empty and holds no build", "name another folder with --out")


def provenance(recipe: Recipe, checks: Sequence[Check]) -> dict[str, Any]:
    """Everything that a build depends on besides the ledger; ``checks`` are custom ones."""
    config, catalogue = recipe.config, recipe.catalogue
    wanted = quotas(config, catalogue)
    scenarios = {f"{number:03d}": {"name": catalogue[number].name, "quota": quota} for number, quota in wanted.items()}
    return {
        "configuration": config.published,
        "identity": config.identity,
        "templates": recipe.templates,
        "rules": recipe.language.hashes,
        "schemas": {name: digest(schema(name)) for name in dict.fromkeys(kind.answer for kind in recipe.kinds)},
        "seeds": catalogue.seed_hash,
        "scenario_files": recipe.scenario_files,
        "definitions": definitions_of({"scenarios": scenarios}, catalogue),
        "scenarios": scenarios,
        "toxicity_weights": weights_of(config.checks.toxicity),
        **({"checks": {check.name: check.signature for check in checks}} if checks else {}),
        "builder": __version__,
    }


def write_definitions(out: Path, texts: Mapping[str, str]) -> dict[str, Any]:
    """Writes the definition files of a build atomically; returns their hashes for the header. Does nothing without texts."""
    if not texts:
        return {}
    # Its own, whatever was left of it: a folder that was changed by hand is written anew too.
    shutil.rmtree(out / DESIGN, ignore_errors=True)
    with whole_folder(out / DESIGN, made_by=next(iter(texts))) as folder:
        for path, text in texts.items():
            write_whole(folder / path, text)
    return {DESIGN: {path: digest_bytes(text.encode()) for path, text in texts.items()}}


def read_definitions(build_dir: Path, header: Mapping[str, Any]) -> dict[str, str]:
    """The definition files of a finished build, as texts by path.

    Raises:
        InputError: if they were changed after the build, or are missing.
    """
    if DESIGN not in header:
        raise input_error(build_dir, f"does not hold the definitions that it was built with (no {DESIGN} in it)", FIX_REBUILD)
    texts, problems = dict[str, str](), list[Problem]()
    for path, value in header[DESIGN].items():
        where = build_dir / DESIGN / path
        try:
            texts[path] = read_text(where)
        except (OSError, ValueError) as error:
            problems.append(Problem(str(where), f"cannot be read: {error}", FIX_REBUILD))
            continue
        if digest_bytes(texts[path].encode()) != value:
            problems.append(Problem(str(where), "was changed after the build", FIX_REBUILD))
    if sum(map(len, texts.values())) > MOST_TOGETHER:
        problems.append(Problem(str(build_dir / DESIGN), TOO_MUCH, "make them shorter"))
    refuse(problems)
    return texts


def read_build(build_dir: Path) -> dict[str, Any]:
    """The header of a finished build; its outcomes are checked by hash.

    Raises:
        InputError: if there is none, or the outcomes were changed.
    """
    path = build_dir / BUILD
    if not path.is_file():
        raise input_error(build_dir, "holds no finished build", f"run empathy-eval build CONFIG --out {build_dir} to its end")
    header = read_json(path, "build", FIX_REBUILD)
    if digest_file(build_dir / OUTCOMES) != header["outcomes"]:
        raise input_error(build_dir / OUTCOMES, "was changed after the build", FIX_REBUILD)
    return header


def accepted_outcomes(build_dir: Path, *, checked: bool = False) -> Iterator[Outcome]:
    """The accepted outcomes of a build in plan order, without withdrawals; ``checked`` skips validation."""
    configuration = json.loads((build_dir / BUILD).read_text(encoding="utf-8"))["configuration"]
    withdrawals = configuration.get("withdrawn", [])
    withdrawn, pairs = withdrawn_dialogues(withdrawals), withdrawn_pairs(withdrawals, configuration.get("corrected", ()))
    with (build_dir / OUTCOMES).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            value = json.loads(line)
            if value["status"] == "accepted" and value["dialogue_id"] not in withdrawn:
                if not checked:
                    check(value, "outcome", f"{build_dir / OUTCOMES}: line {number}")
                outcome = Outcome.from_json(value)
                yield _without(outcome, pairs) if pairs else outcome


def _without(outcome: Outcome, pairs: Collection[str]) -> Outcome:
    """An outcome without some of its pairs and their candidates."""
    # Here, because it loads pyarrow, which a build has no use for.
    from empathy_eval.design.dataset import pair_id

    def stay(item: Pair | Candidate) -> bool:
        return pair_id(outcome.dialogue_id, item.turn) not in pairs

    return replace(outcome, pairs=tuple(filter(stay, outcome.pairs)), candidates=tuple(filter(stay, outcome.candidates)))


def folder_canary_warnings(folder: Path) -> list[str]:
    """Contamination check: scans the answers in a finished folder of a build, annotations or replies for the canary."""
    if not (folder / BUILD).is_file() or not (folder / OUTCOMES).is_file():
        return []
    configuration = read_json(folder / BUILD, None, "run the same command again")["configuration"]
    name = configuration["release"]["name"] if "release" in configuration else configuration["name"]
    return canary_warnings(numbered_lines(folder / OUTCOMES), release_identity({"name": name})[CANARY])
