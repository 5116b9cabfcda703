"""The folder of a build: which configuration it belongs to, what its build is a function of, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.base.schemas import check, read_json, schema
from empathy_eval.base.version import __version__
from empathy_eval.completions.models.toxicity_scorer import weights_of
from empathy_eval.design.endpoints import Asks
from empathy_eval.design.quotas import quotas
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.checks.own import Check
from empathy_eval.generation.outcomes import Outcome

OUTCOMES, BUILD, CONFIGURATION, LEDGER = "outcomes.jsonl", "build.json", "configuration.json", "ledger.sqlite"


def claim_folder(out: Path, config: Asks) -> None:
    """Sees to it that the folder of a job belongs to one configuration.

    Raises:
        InputError: if it is a file, cannot be a folder, holds what comes of another configuration, or holds what comes of none.
    """
    try:
        file = out.exists() and not out.is_dir()
    except OSError as error:  # a name that is too long
        raise input_error(out, f"cannot be a folder: {error.strerror}", "name another folder with --out") from error
    if file:
        raise input_error(out, "is a file", "name a folder with --out")
    written = out / CONFIGURATION
    fix = "name another folder with --out; a ledger can be shared with --ledger"
    if written.is_file() and (held := config.misfit(read_json(written, None, fix))):
        raise input_error(out, held, fix)
    # A ledger alone is no obstacle: it was put there, or the disk was full before anything else could be written.
    if out.is_dir() and not written.is_file() and not all(path.name.startswith(LEDGER) for path in out.iterdir()):
        raise input_error(out, "is not empty and holds no build", "name another folder with --out")


def provenance(recipe: Recipe, checks: Sequence[Check]) -> dict[str, Any]:
    """All that a build is a function of, beside the ledger; ``checks`` are those of one's own."""
    config, catalogue = recipe.config, recipe.catalogue
    wanted = quotas(config, catalogue)
    return {
        "configuration": config.published,
        "identity": config.identity,
        "templates": recipe.templates,
        "rules": recipe.language.hashes,
        "schemas": {name: digest(schema(name)) for name in dict.fromkeys(kind.answer for kind in recipe.kinds)},
        "seeds": catalogue.seed_hash,
        "scenario_files": recipe.scenario_files,
        "scenarios": {f"{number:03d}": {"name": catalogue[number].name, "quota": quota} for number, quota in wanted.items()},
        "toxicity_weights": weights_of(config.checks.toxicity),
        **({"checks": {one.name: one.signature for one in checks}} if checks else {}),
        "builder": __version__,
    }


def read_build(build_dir: Path) -> dict[str, Any]:
    """The header of a finished build, after its outcomes were found unchanged.

    Raises:
        InputError: if there is none, or the outcomes are not the ones it was written for.
    """
    path = build_dir / BUILD
    if not path.is_file():
        raise input_error(build_dir, "holds no finished build", f"run empathy-eval build CONFIG --out {build_dir} to its end")
    header = read_json(path, "build", "run the same build again: it replays from the ledger")
    if digest_file(build_dir / OUTCOMES) != header["outcomes"]:
        raise input_error(build_dir / OUTCOMES, "was changed after the build", "run the same build again: it replays from the ledger")
    return header


def accepted(build_dir: Path, *, checked: bool = False) -> Iterator[Outcome]:
    """The accepted outcomes of a build, in plan order, without the withdrawn ones; ``checked`` if they are known to be valid."""
    configuration = json.loads((build_dir / BUILD).read_text(encoding="utf-8"))["configuration"]
    withdrawn = {one["dialogue_id"] for one in configuration.get("withdrawn", [])}
    with (build_dir / OUTCOMES).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            value = json.loads(line)
            if value["status"] == "accepted" and value["dialogue_id"] not in withdrawn:
                if not checked:
                    check(value, "outcome", f"{build_dir / OUTCOMES}: line {number}")
                yield Outcome.from_json(value)
