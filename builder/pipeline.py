"""The build: maps the items of a plan to outcomes, in plan order, through a bounded window."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import __version__
from builder.asking import Asker, Trail
from builder.checks.toxicity import Toxicity
from builder.config import Configuration
from builder.errors import input_error, job_error
from builder.files import data_folder, whole_file, write_whole
from builder.generation import generate
from builder.ledger import Ledger
from builder.models import make_models
from builder.models.protocol import NoAnswer
from builder.planning import plans, quotas
from builder.prompts import Prompts
from builder.records import Outcome, Plan
from builder.rewriting import Rewriter
from builder.scenarios import Catalogue
from builder.schemas import schema
from builder.signature import canonical_json, digest, digest_file

OUTCOMES, BUILD, CONFIGURATION, LEDGER = "outcomes.jsonl", "build.json", "configuration.json", "ledger.sqlite"
ANSWER_SCHEMAS = ("dialogue_answer", "variant_answer", "score_answer")
# Items that are worked on at once. More than the requests in flight, so that a slow item does not idle the rest.
WINDOW = 256


@dataclass
class Summary:
    """What became of the items so far."""

    total: int = 0
    status: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    omitted: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    controls: int = 0
    usage: dict[str, Counter[str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Counts one outcome."""
        self.status[outcome.status] += 1
        self.pairs += len(outcome.pairs)
        self.controls += sum(pair.near_empathetic is not None for pair in outcome.pairs)
        if outcome.status == "missing":
            self.missing.append(f"{outcome.dialogue_id}: {outcome.reasons[0]}")
        else:
            self.reasons.update(outcome.reasons)
        self.omitted.update(f"{one.kind}: {reason}" for one in outcome.failures if one.final for reason in one.reasons)
        for model, row in outcome.usage.items():
            self.usage.setdefault(model, Counter()).update(row)

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values in sorted order."""
        return {
            "planned": self.total,
            **{status: self.status[status] for status in ("accepted", "rejected", "missing")},
            "pairs": self.pairs,
            "controls": self.controls,
            "rejected_by_reason": dict(sorted(self.reasons.items())),
            "failed_for_good": dict(sorted(self.omitted.items())),
            "usage": {model: dict(sorted(row.items())) for model, row in sorted(self.usage.items())},
        }


@dataclass(frozen=True)
class Workshop:
    """Everything an item needs to be worked on."""

    config: Configuration
    catalogue: Catalogue
    asker: Asker
    toxicity: Toxicity

    async def item(self, plan: Plan) -> Outcome:
        """One planned dialogue with all its rewrites, ask by ask, to its outcome."""
        trail = Trail()
        try:
            dialogue = await generate(self.asker, self.catalogue, self.config, self.toxicity, plan, trail)
            if dialogue is None:
                reasons = tuple(sorted({reason for _, failure in trail.failures for reason in failure.reasons}))
                return Outcome(
                    plan.dialogue_id, plan.scenario_id, "rejected", reasons, failures=trail.sorted_failures(), usage=trail.plain_usage()
                )
            rewriter = Rewriter(self.asker, self.catalogue.taxonomy, self.config, self.toxicity)
            pairs = await rewriter.pairs(dialogue, plan.turns, trail)
        except NoAnswer as error:
            return Outcome(plan.dialogue_id, plan.scenario_id, "missing", (str(error),))
        return Outcome(plan.dialogue_id, plan.scenario_id, "accepted", (), dialogue, pairs, trail.sorted_failures(), trail.plain_usage())


async def outcomes(workshop: Workshop, items: Iterable[Plan], window: int = WINDOW) -> AsyncIterator[Outcome]:
    """The outcomes in plan order, at most ``window`` items at work. An error waits for the items at work to end."""
    running: deque[asyncio.Task[Outcome]] = deque()
    try:
        for plan in items:
            running.append(asyncio.create_task(workshop.item(plan)))
            if len(running) >= window:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        await asyncio.gather(*running, return_exceptions=True)


def build(
    config: Configuration,
    out: Path,
    catalogue: Catalogue,
    prompts: Prompts,
    *,
    ledger_path: Path | None = None,
    offline: bool = False,
    progress: Callable[[Summary], None] = lambda summary: None,
    window: int = WINDOW,
) -> Summary:
    """Builds into a folder: asks for what the ledger does not have, and writes the outcomes whole or not at all.

    Raises:
        InputError: if the folder holds another configuration's build, or a scorer or model cannot be had.
        JobError: if the ledger is damaged or full, or an offline build lacks an answer.
    """
    _claim(out, config)
    path = ledger_path or out / LEDGER
    with Ledger(path, create=not offline) as ledger:
        write_whole(out / CONFIGURATION, json.dumps(config.published, indent=2, ensure_ascii=False) + "\n")
        return asyncio.run(_run(config, out, catalogue, prompts, ledger, offline, progress, window))


def _claim(out: Path, config: Configuration) -> None:
    """A build folder belongs to one configuration."""
    if out.is_dir():
        written = out / CONFIGURATION
        if written.is_file():
            if digest(json.loads(written.read_text(encoding="utf-8"))) != config.identity:
                fix = "name another folder with --out; a ledger can be shared with --ledger"
                raise input_error(out, "holds the build of another configuration", fix)
        elif any(out.iterdir()):
            raise input_error(out, "is not empty and holds no build", "name another folder with --out")
    elif out.exists():
        raise input_error(out, "is a file", "name a folder with --out")


async def _run(
    config: Configuration,
    out: Path,
    catalogue: Catalogue,
    prompts: Prompts,
    ledger: Ledger,
    offline: bool,
    progress: Callable[[Summary], None],
    window: int,
) -> Summary:
    models = make_models(config, catalogue)
    toxicity = Toxicity(config.checks.toxicity, ledger, offline=offline)
    asker = Asker(ledger, models, prompts, samples=config.samples, repairs=config.repairs, offline=offline)
    items = list(plans(config, catalogue))
    summary = Summary(total=len(items))
    try:
        with whole_file(out / OUTCOMES) as partial:
            with partial.open("wb") as stream:
                async for outcome in outcomes(Workshop(config, catalogue, asker, toxicity), items, window):
                    stream.write(canonical_json(outcome.to_json()) + b"\n")
                    summary.add(outcome)
                    progress(summary)
            if offline and summary.missing:
                raise _unanswered(summary, ledger.path)
            (out / BUILD).unlink(missing_ok=True)
    finally:
        for model in set(models.values()):
            await model.close()
    header = {**_provenance(config, catalogue, prompts, toxicity), "summary": summary.to_json(), "outcomes": digest_file(out / OUTCOMES)}
    write_whole(out / BUILD, json.dumps(header, indent=2, ensure_ascii=False) + "\n")
    return summary


def _unanswered(summary: Summary, ledger: Path) -> Exception:
    shown = summary.missing[:5] + ([f"and {len(summary.missing) - 5} more"] if len(summary.missing) > 5 else [])
    return job_error(ledger, "the offline build lacks answers:\n  " + "\n  ".join(shown), "run the same build without --offline")


def _provenance(config: Configuration, catalogue: Catalogue, prompts: Prompts, toxicity: Toxicity) -> dict[str, Any]:
    """All that a build is a function of, beside the ledger."""
    return {
        "configuration": config.published,
        "identity": config.identity,
        "templates": dict(sorted(prompts.hashes.items())),
        "rules": {path.name: digest_file(path) for path in sorted(data_folder("rules").glob("*.yaml"))},
        "schemas": {name: digest(schema(name)) for name in ANSWER_SCHEMAS},
        "seeds": catalogue.seed_hash,
        "scenarios": {f"{one.number:03d}": {"name": one.name, "quota": quota} for one, quota in _with_quota(config, catalogue)},
        "toxicity_weights": toxicity.weights,
        "builder": __version__,
    }


def _with_quota(config: Configuration, catalogue: Catalogue) -> list[tuple[Any, int]]:
    wanted = quotas(config, catalogue)
    return [(catalogue[number], quota) for number, quota in wanted.items()]
