"""``annotate``: annotation of a release or a build by a judge."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import Problem, input_error, nearest, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.json_text import fields_json, json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import A_RELEASE, Command, Option, whole_number
from empathy_eval.commands.execution import RUN, ClosingMessage, RunOptions, run_command, run_job
from empathy_eval.commands.preview import PREVIEWED, ledger_of_preview, print_preview
from empathy_eval.commands.score_tables import attack_lines, crossed_lines

if TYPE_CHECKING:
    from empathy_eval.evaluation.inversion.rows import AttackTable
    from empathy_eval.generation.summary import HandedOut, Summary
    from empathy_eval.raters.judges.annotating import AnnotationJob

# Upper bounds, far above any release, that a manifest can hold.
MOST_TURNS, MOST_SAMPLES, MOST_ATTACKED = 1_000_000_000, 10_000, 1_000_000
# Default number of attacked turns: each needs about twenty more requests.
ATTACKED = 25
EXAMPLES = """\
examples:
  empathy-eval annotate build/demo/release --out build/judged --rubric teacher --model NAME --base-url http://localhost:8000/v1 --turns 200
  empathy-eval annotate build/demo --out build/judged-build --rubric teacher --model judge.yaml --turns all --preview
  empathy-eval annotate build/demo/release --out build/by-hand --rubric warmer --model by-hand --turns 30 --requests-to ask.jsonl

--model is the name of a model, or a YAML file with the keys of one model of a configuration (endpoint, prices, limits). A reward model
(--rubric reward) needs such a file, with kind: reward.
At the end it prints an evaluation of the judge. --beside and --reviews compare the judge with other judges and with people.
Run the same command again to resume, or with more --turns to add turns.
Packaged rubrics: {rubrics}.
"""


@takes_paths
def annotate(
    release: str | Path, out: str | Path, *, rubric: str | Path, model: str | Path | Mapping[str, Any] | Any, base_url: str | None = None,
    turns: int | None = 2000, variants: Sequence[str] | None = None, samples: int = 1,
    templates: str | Path | None = None, ways: Mapping[str, Any] | None = None, attacks: Sequence[Any] | None = None,
    attacked_turns: int = ATTACKED, rules: str | Path | None = None, lessons: str | Path | None = None, shots: str | Path | None = None,
    comparisons: int | None = None, crossed: bool = False,
    progress: Callable[[Summary], None] = lambda summary: None,
) -> HandedOut:  # fmt: skip
    """Annotates a release, a finished build or replies of systems by a rubric.

    Sends only requests that its ledger cannot answer.

    ``model`` is a name, the path of a YAML file, its content, or a model object. ``turns`` and ``variants`` may be None, for all. ``ways``
    holds options of ``build``: ``ledger``, ``offline``, ``requests_to``, ``batch``, ``wait``, ``budget_usd``, ``budget_tokens``, ``part``,
    ``engine``, ``ray_address`` and ``keep_going``. With ``attacks`` (as in ``score``; an empty list means all), attacked texts of
    ``attacked_turns`` turns are judged too, in ``out/attacks``. Their fixed texts are English, or those of the folder ``rules``.
    ``lessons`` and ``shots`` are rubrics or files whose lessons or examples the rubric is given; it has another hash then.
    Of replies every two systems are compared over ``comparisons`` turns (None: all that are judged). With ``crossed``, the replies of
    crossed items are judged, each in both contexts; ``turns`` is then the number of items.

    Raises
    ------
    InputError
        If an argument is not valid, or the folder holds other annotations.
    JobError
        If the job could not finish; every answer so far is in the ledger.
    """
    options = Namespace(
        release=release, out=Path(out), rubric=rubric, model=model, base_url=base_url, turns=turns, variants=variants, samples=samples,
        templates=templates, attacks=attacks, attacked_turns=attacked_turns, rules=rules, lessons=lessons, shots=shots,
        comparisons=comparisons, crossed=crossed,
    )  # fmt: skip
    return _jobs(options).done(RunOptions(**(ways or {}), progress=progress))


def _jobs(options: Namespace) -> AnnotationJobs:
    """Returns the job for texts, and the job for attacked texts if attacks are requested.

    Raises:
        InputError: if an option is not valid, there is nothing to attack, an attack is unknown, or rules are given without attacks.
    """
    if Path(options.release).is_dir() and options.out.resolve().is_relative_to(Path(options.release).resolve()):
        # Extra files would contradict the manifest.
        raise input_error("--out", f'"{options.out}" is inside the folder that is judged', "name a folder outside it")
    job, folder = _job(options)
    if options.attacks is None:
        if options.rules:
            raise input_error("--rules", f'"{options.rules}" applies to attacks, but none are requested', "add --attacks, or leave it out")
        return AnnotationJobs(job, options.out, folder)
    if not 1 <= options.attacked_turns <= MOST_ATTACKED:
        fix = f"use a number from 1 to {MOST_ATTACKED:,}"
        raise input_error("--attacked-turns", f"{options.attacked_turns:.3g} is out of range", fix)
    from empathy_eval.raters.judges.attacking import AttackSelection, attacking

    selection = AttackSelection(tuple(options.attacks), options.attacked_turns, Path(options.rules) if options.rules else None)
    return AnnotationJobs(job, options.out, folder, *attacking(job, folder, selection))


def _job(options: Namespace) -> tuple[AnnotationJob, Path]:
    """Returns the annotation job and the folder that is judged."""
    from empathy_eval.design.rubrics import load_rubric
    from empathy_eval.raters.judges.annotating import AnnotationPlan, annotations_of, judge_of
    from empathy_eval.raters.judges.cases import TEXTS
    from empathy_eval.raters.systems.replies import is_replies, read_replied, replies_as_material
    from empathy_eval.releases.hub.fetch import release_folder

    folder = release_folder(options.release)
    replied = read_replied(folder) if is_replies(folder) else None
    known = replied.systems if replied else TEXTS
    names, fix = options.variants or (), f"use some of these: {', '.join(known)}"
    problems = [Problem("--variants", f'"{name}" is not known', fix + nearest(name, known)) for name in names if name not in known]
    if replied and options.attacks is not None:
        problems.append(Problem("--attacks", "attacks texts of a release, not replies of systems", "leave it out, or name the release"))
    if options.comparisons is not None and not replied:
        problems.append(Problem("--comparisons", "is for replies of systems", "leave it out, or name a folder of replies"))
    if options.crossed:
        others = {"--attacks": options.attacks is not None, "--variants": options.variants, "a folder of replies": replied}
        problems += [
            Problem("--crossed", f"cannot be combined with {name}", "leave one of the two out") for name, given in others.items() if given
        ]
    limits = (("--turns", options.turns, MOST_TURNS), ("--samples", options.samples, MOST_SAMPLES))
    for name, count, most in (*limits, ("--comparisons", options.comparisons, MOST_TURNS)):
        if count is not None and not 1 <= count <= most:
            what = f"{count} is less than 1" if count < 1 else f"{count:.3g} is more than {most:,}"
            problems.append(Problem(name, what, f"name a number from 1 to {most:,}"))
    read = load_rubric(options.rubric, options.lessons, options.shots)
    refuse(problems)
    custom, judge = None, options.model
    if not isinstance(judge, str | Path | Mapping):
        custom, judge = judge, {"kind": "given", "model": getattr(judge, "name", None), "endpoint": getattr(judge, "endpoint", None)}
    else:
        judge = judge_of(judge, options.base_url)
    chosen = tuple(name for name in known if not names or name in names)
    design = AnnotationPlan(options.turns, chosen, options.samples, options.comparisons, bool(options.crossed))
    templates = Path(options.templates) if options.templates else None
    material = partial(replies_as_material, replied) if replied else None
    return annotations_of(folder, read, judge, design, custom=custom, templates=templates, material=material), folder


@dataclass(frozen=True)
class AnnotationJobs:
    """The annotation job and, over the same ledger, the job for attacked texts; ``notes`` list what the attacks leave out, and why."""

    first: AnnotationJob
    out: Path
    release: Path
    attacked: AnnotationJob | None = None
    notes: tuple[str, ...] = ()

    def done(self, run: RunOptions) -> HandedOut:
        """Runs the first job, then the second; writes the figures of attacks once both are complete.

        Open batches of the second job are imported first, because no other job may open their ledger.
        """
        from empathy_eval.generation.outcomes import LEDGER
        from empathy_eval.raters.judges.annotations import ATTACKS

        run.refuse_contradictions("annotate")
        if run.batch and self.first.config.model.form:
            fix = "leave it out; or write the requests to a file with --requests-to, for a server that processes files"
            raise input_error("--batch", "no provider runs reward models in batches", fix)
        if self.attacked is None:
            return run_job(self.first, self.out, run)
        ledger = Path(run.ledger or self.out / LEDGER)
        second = partial(run_job, self.attacked, self.out / ATTACKS, replace(run, ledger=ledger))
        begun = second() if run.batch and _has_open_batches(ledger, self.attacked.config.identity) else None
        if begun and begun.requests:
            return _combined(None, begun)
        handed = run_job(self.first, self.out, run)
        if handed.requests:
            return handed
        attacks = begun or second()
        if not (attacks.requests or run.part):
            self.table()
        return _combined(handed, attacks)

    def table(self) -> AttackTable:
        """Computes the table of attacks, and writes it beside the annotations of attacked texts."""
        from empathy_eval.base.files import write_whole
        from empathy_eval.raters.judges.annotations import ATTACKS
        from empathy_eval.raters.judges.attacking import attack_table

        table = attack_table(self.out, self.release, self.notes)
        write_whole(self.out / ATTACKS / "figures.json", json_text(table.to_json()) + "\n")
        return table


def _has_open_batches(path: Path, identity: str) -> bool:
    """Returns whether a ledger has open batches of the job of that identity."""
    from empathy_eval.completions.ledger import Ledger

    if not path.is_file():
        return False
    with Ledger(path, create=False, write=False) as ledger:
        return any(batch.build == identity for batch in ledger.open_batches())


def _combined(first: HandedOut | None, second: HandedOut) -> HandedOut:
    """Combines both results, the second summary beside the first. The first has no requests that are handed out."""
    from empathy_eval.generation.summary import HandedOut
    from empathy_eval.raters.judges.annotations import ATTACKS

    parts = {ATTACKS: second.summary} if second.summary else {}
    return HandedOut(first.summary if first else None, second.requests, (first.reasons if first else Counter()) + second.reasons, parts)


def _turns(text: str) -> int | None:
    return None if text == "all" else whole_number(text, "of at least 1, or all")


def _run(options: Namespace) -> int:
    jobs = _jobs(options)
    if options.preview:
        return _preview(jobs, options)
    from empathy_eval.raters.judges.annotations import read_annotations
    from empathy_eval.raters.judges.cases import REPLIES_TO
    from empathy_eval.raters.judges.judge_quality import crossed_quality, judge_quality, quality_text, read_compared

    config = jobs.first.config
    built, crossed = "seal" not in config.release, config.design.crossed
    replies = REPLIES_TO in config.release
    if built and (options.beside or options.reviews):
        what = f"compare a judge with others on a release, but {options.release} is {'a folder of replies' if replies else 'a build'}"
        fix = "leave them out, or annotate a release of the build: answers in the ledger are not requested again"
        raise input_error("--beside, --reviews", what, fix)
    if crossed and (options.beside or options.reviews):
        raise input_error("--beside, --reviews", "compare judges on pairs and dialogues, not on crossed items", "leave them out")
    # Read before any request is sent, so that a wrong name costs nothing.
    compared = read_compared(config, options.out, options.beside, options.reviews)

    def closing() -> ClosingMessage:
        if built:
            step = f"to include the annotations in a release: empathy-eval release {options.release} --annotations {options.out} …"
            step = f"to compare the systems: empathy-eval compare {options.release} --annotations {options.out}" if replies else step
            message = ClosingMessage(step, {})
        elif crossed:
            quality_on_crossed = crossed_quality(options.out, jobs.release)
            step = f"to put them beside metrics and shortcuts: empathy-eval score {options.release} --scores {options.out}/scores/*.csv"
            message = ClosingMessage("\n".join([*crossed_lines(quality_on_crossed), step]), {"crossed": fields_json(quality_on_crossed)})
        else:
            quality = judge_quality(read_annotations(options.out), jobs.release, compared)
            message = ClosingMessage(quality_text(quality), {"worth": quality.to_json()})
        if not jobs.attacked:
            return message
        table = jobs.table()
        return ClosingMessage("\n".join([message.text, "", *attack_lines(table)]), {**message.json, "attacks": table.to_json()})

    return run_command(options, "annotate", jobs.done, closing)


def _preview(jobs: AnnotationJobs, options: Namespace) -> int:
    """Prints the estimate and the first requests, also for attacked texts; returns the exit status."""
    from empathy_eval.raters.judges.replay import preview

    ledger = ledger_of_preview(options, jobs.first.config)
    first = preview(jobs.first, ledger, options.requests)
    head = f"--- {first.answered:,} requests are already answered in {ledger}; the remaining ones:" if first.answered else ""
    if jobs.attacked is None:
        return print_preview(options, first, head)
    second = preview(jobs.attacked, ledger, 0)
    counts = f"{jobs.attacked.planned():,} turns; {second.answered:,} of their requests are already answered"
    return print_preview(options, first, head, second, f"--- also attacked texts of {counts}:")


COMMAND = Command(
    annotate,
    "let a judge rate or compare replies by a rubric",
    "Asks a model to judge the replies of a release or a build by a rubric. Keeps the answers in a ledger of their own, so that no "
    "answered request is sent again. The judge never sees which variant it reads, or another variant beside it. A text without a valid "
    "answer stays unannotated.",
    {
        "release=BUILD_OR_RELEASE": Option(f"the release, {A_RELEASE}; or the folder of a finished build or of replies", type=str),
        "--out DIR": "the annotation folder of one judge and one rubric",
        "--rubric NAME": Option("a packaged rubric by its name, or a file of your own", type=str),
        "--lessons RUBRIC": Option("give the rubric the lessons of this rubric or YAML file, such as lend-an-ear", type=str),
        "--shots RUBRIC": Option("give the rubric the examples of this rubric or YAML file, in the style shots", type=str),
        "--model NAME": Option("the judge: the name of a model, or a YAML file that describes it", type=str),
        "--base-url URL": "the OpenAI-compatible endpoint of the judge, such as http://localhost:8000/v1",
        "--turns N": Option(
            "how many turns (or dialogues) to judge: a number, or all (default: 2000); a larger number only adds turns. Turns with "
            "controls come first, unless --variants leaves controls out. Both groups are spread evenly over scenarios and manners",
            type=_turns, default=2000,
        ),
        "--variants A,B": Option("the variants, or systems, to judge (default: all)", action="store", type=lambda text: text.split(",")),
        "--comparisons N": Option("with replies: compare each two systems over N turns (default: all that are judged)", type=whole_number),
        "--crossed": "judge crossed items instead, each reply in each of its two contexts; --turns N is then N items",
        "--samples K": Option("how many times each text is judged (default: 1)", default=1),
        "--templates DIR": "a folder of judge prompts of your own",
        "--beside DIR": Option(
            "a folder of finished annotations of the release to compare with: by the same rubric, or preferences for ratings; repeatable",
            action="append", type=Path, default=[],
        ),
        "--reviews FILE": Option("the record of `review import`, to compare the judge with people", type=Path),
        **RUN,
        **PREVIEWED,
        "--attacks NAME": Option(
            "also ask about attacked texts, and report how often a value rises; all attacks, or only these, by name or module:name "
            "(names-throughout, and those of score --attacks); these annotations stay in DIR/attacks",
            action="store", nargs="*",
        ),
        "--attacked-turns N": Option(
            f"with --attacks: attack the first N turns of the sample; a larger N only adds turns (default: {ATTACKED})", default=ATTACKED
        ),
        "--rules DIR": "with --attacks: the folder with attacks.yaml and names.yaml of the language",
    },
    EXAMPLES.format(rubrics=", ".join(sorted(path.stem for path in data_folder("rubrics").glob("*.yaml")))),
    factories={"ways": RunOptions},
    run=_run,
)  # fmt: skip
