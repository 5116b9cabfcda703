"""``respond``: ask systems for replies to contexts of a release."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import A_RELEASE, Command, Option, check_count, whole_number
from empathy_eval.commands.execution import RUN, ClosingMessage, RunOptions, run_command, run_job
from empathy_eval.commands.preview import PREVIEWED, ledger_of_preview, print_preview

if TYPE_CHECKING:
    from empathy_eval.generation.summary import HandedOut, Summary
    from empathy_eval.raters.systems.responding import ReplyJob

# So many contexts are replied to where nobody says otherwise.
CONTEXTS = 200
EXAMPLES = """\
examples:
  empathy-eval respond build/demo/release --systems systems.yaml --out build/replies --preview
  empathy-eval respond build/demo/release --systems systems.yaml --baselines --out build/replies
  empathy-eval respond build/demo/release --baselines --split all --contexts all --out build/baselines
  empathy-eval annotate build/replies --rubric heart --model judge.yaml --out build/judged
  empathy-eval compare build/replies --annotations build/judged --page build/systems.html

systems.yaml lists systems, each with a name, a system_prompt (optional) and a model as under models of a build configuration:
docs/systems.md. Run the same command again to resume. With another system in the file, or with more --contexts, only what is new is asked.
"""


@takes_paths
def respond(
    release: str | Path, out: str | Path, *, systems: str | Path | Mapping[str, Any] | None = None, baselines: bool = False,
    split: str = "test", contexts: int | None = CONTEXTS, seed: int = 0, toxicity: bool = True, rules: str | Path | None = None,
    ways: Mapping[str, Any] | None = None, progress: Callable[[Summary], None] = lambda summary: None,
) -> HandedOut:  # fmt: skip
    """Asks systems for replies to contexts of a release, in the folder ``out``: asks for what its ledger does not have.

    ``systems`` is a YAML file, or a mapping by name: of what a file says of a system, of a model, or of a function that takes messages and
    gives a text. ``baselines`` adds texts of the release, an echo, one sympathy and the nearest helper turn of another split. The first
    ``contexts`` (None: all) of a ``split`` or ``all`` are replied to, in an order by the ``seed``. Checks of helper turns run over the
    replies and are noted; ``toxicity`` is measured as in the release. ``ways`` are as of ``annotate``.

    Raises:
        InputError: if something is wrong with what is given, or the folder holds other replies.
        JobError: if the job could not finish; every answer so far is in the ledger.
    """
    run = RunOptions(**(ways or {}), progress=progress)
    arguments = Namespace(
        release=release, out=Path(out), systems=systems, baselines=baselines, split=split, contexts=contexts, seed=seed,
        toxicity=toxicity, rules=rules,
    )  # fmt: skip
    return _respond(_job(arguments), arguments.out, run)


def _respond(job: ReplyJob, out: Path, run: RunOptions) -> HandedOut:
    run.refuse_contradictions("respond")
    return run_job(job, out, run)


def _job(options: Namespace) -> ReplyJob:
    """The job of the options of the command line.

    Raises:
        InputError: if an option is not valid.
    """
    from empathy_eval.design.dataset import SPLITS
    from empathy_eval.raters.systems.contexts import ALL, ContextSample
    from empathy_eval.raters.systems.responding import RespondOptions, load_systems, reply_job
    from empathy_eval.releases.hub.fetch import release_folder

    if options.contexts is not None:
        check_count("--contexts", options.contexts, 1)
    if options.split not in (*SPLITS, ALL):
        raise input_error("--split", f'there is no "{options.split}"', f"name one of {', '.join((*SPLITS, ALL))}")
    folder = release_folder(options.release)
    if options.out.resolve().is_relative_to(folder.resolve()):
        # Extra files would contradict the manifest.
        raise input_error("--out", f'"{options.out}" is inside the release', "name a folder outside it")
    systems, objects = load_systems(options.systems) if options.systems else ((), {})
    sample, rules = ContextSample(options.split, options.contexts, options.seed), Path(options.rules) if options.rules else None
    return reply_job(folder, RespondOptions(systems, objects, sample, bool(options.baselines), options.toxicity is not False, rules))


def _contexts(text: str) -> int | None:
    """A number of contexts, or all (None)."""
    return None if text == "all" else whole_number(text, "of at least 1, or all")


def _run(options: Namespace) -> int:
    job = _job(options)
    if options.preview:
        return _preview(job, options)
    step = f"empathy-eval annotate {options.out} --rubric NAME --model NAME --out DIR"
    closing = ClosingMessage(f"to have a judge rate them: {step}\nto compare them: empathy-eval compare {options.out}", {})
    return run_command(options, "respond", partial(_respond, job, options.out), lambda: closing)


def _preview(job: ReplyJob, options: Namespace) -> int:
    """Prints the estimate of each system and the first requests; returns the exit status."""
    from empathy_eval.raters.judges.replay import JobPreview, preview

    ledger = ledger_of_preview(options, job.config)
    previews = [(name, preview(part, ledger, options.requests)) for name, part in job.parts()]
    whole = JobPreview(
        tuple(request for _, part in previews for request in part.requests),
        sum(part.answered for _, part in previews),
        tuple(replace(estimate, kind=name) for name, part in previews for estimate in part.estimates),
    )
    counts = f"{len(job.contexts):,} contexts, {len(previews)} systems, {len(job.config.baselines)} baselines"
    return print_preview(options, whole, f"--- {counts}; {whole.answered:,} are answered")


COMMAND = Command(
    respond,
    "ask systems for replies to contexts of a release",
    "Asks each system for a reply to the same contexts of a release. Keeps the answers in a ledger, so that no answered request is sent "
    "again. Checks of helper turns run over the replies and are reported; nothing is refused for them.",
    {
        "RELEASE": Option(f"the release, {A_RELEASE}", type=str),
        "--systems FILE": Option("the systems, a YAML file", type=Path),
        "--out DIR": "the folder of the replies",
        "--baselines": "also add replies that need no model: reference, empathetic, near_empathetic, apathetic, echo, canned, bm25",
        "--split {train,validation,test,all}": Option("the split of the contexts (default: test)", default="test"),
        "--contexts N": Option(
            f"how many contexts to reply to: a number, or all (default: {CONTEXTS}); a larger number only adds contexts. They are spread "
            "evenly over scenarios and phases",
            type=_contexts, default=CONTEXTS,
        ),
        "--seed N": Option("the seed of the order of contexts (default: 0)", type=whole_number, default=0),
        "toxicity=--no-toxicity": "do not measure the toxicity of replies",
        "--rules DIR": Option("a folder of rules of your own; without it only English replies are checked", type=Path),
        **RUN,
        **PREVIEWED,
    },
    EXAMPLES,
    factories={"ways": RunOptions},
    run=_run,
)  # fmt: skip
