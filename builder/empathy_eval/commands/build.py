"""``build``: generation of dialogues and their variants."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import RECIPE, Command, arguments_for, as_recipe, recipe_of
from empathy_eval.commands.execution import RUN, RunOptions, run_command, run_job

if TYPE_CHECKING:
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.generation.summary import HandedOut, Summary


@takes_paths
def build(
    recipe: Recipe | str | Path, out: str | Path, *, models: Mapping[str, Any] | None = None, checks: Sequence[Any] = (),
    ledger: str | Path | None = None, offline: bool = False, requests_to: str | Path | None = None, batch: bool = False,
    wait: bool = True, budget_usd: float | None = None, budget_tokens: int | None = None, part: tuple[int, int] | None = None,
    engine: str = "local", ray_address: str | None = None, progress: Callable[[Summary], None] = lambda summary: None,
    watch: Callable[[int, int], None] = lambda done, total: None, keep_going: bool = False,
) -> HandedOut:  # fmt: skip
    """Makes dialogues and their variants in the folder ``out``. Sends only requests that the ledger cannot answer; call it again to resume.

    The recipe may be the path of a configuration or the name of a packaged one. ``models`` replaces configured models by role
    (``self_chat``, ``near``, ``far``, ``crossed``, ``crossed_judge``); ``checks`` adds custom checks. ``part`` is ``--slice``: (3, 16) is
    the third of sixteen parts. ``progress`` is called after each item, ``watch`` with the finished and all requests of batches.

    It also works inside a running event loop, as in a notebook. An interrupt sends no more requests and waits for those under way.

    Raises
    ------
    InputError
        If an argument is not valid, or the folder holds the build of another configuration.
    JobError
        If the job could not finish; every answer so far is in the ledger.
    """
    run = RunOptions(
        ledger, offline, requests_to, batch, wait, budget_usd, budget_tokens, part, engine, ray_address, progress, watch,
        keep_going=keep_going,
    )  # fmt: skip
    return _build(as_recipe(recipe).with_custom(models or {}, checks), Path(out), run)


def _build(recipe: Recipe, out: Path, run: RunOptions) -> HandedOut:
    run.refuse_contradictions("build")
    return run_job(recipe, out, run)


def _run(options: Namespace) -> int:
    recipe = recipe_of(**arguments_for(options, recipe_of))
    return run_command(options, "build", lambda run: _build(recipe, options.out, run))


COMMAND = Command(
    build,
    "make dialogues and their variants",
    "Sends a model every request that has no answer in the ledger, checks every answer, and writes the outcomes of all items to a folder. "
    "Run the same command again to resume: no answered request is sent twice.",
    {**RECIPE, "--out DIR": "the build folder; it belongs to one configuration", **RUN},
    factories={"recipe": recipe_of},
    run=_run,
)
