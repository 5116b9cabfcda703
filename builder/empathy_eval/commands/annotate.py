"""``annotate``: let a judge rate or compare the replies of a release or a build by a rubric."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import Problem, input_error, nearest, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import Command
from empathy_eval.commands.execution import RUN, ClosingMessage, RunOptions, do, done
from empathy_eval.commands.options import A_RELEASE, ONE_OF, Option, check_count, whole
from empathy_eval.commands.preview import estimate_table, print_requests, requests_json
from empathy_eval.commands.score_tables import attack_lines

if TYPE_CHECKING:
    from empathy_eval.evaluation.inversion.rows import AttackTable
    from empathy_eval.generation.summary import HandedOut, Summary
    from empathy_eval.raters.judges.annotating import AnnotationJob

# Far more than any release has, and what a manifest takes.
MOST_TURNS, MOST_SAMPLES, MOST_ATTACKED = 1_000_000_000, 10_000, 1_000_000
# So many turns are attacked where nobody says otherwise: each is asked about some twenty times more.
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
    attacked_turns: int = ATTACKED, rules: str | Path | None = None,
    progress: Callable[[Summary], None] = lambda summary: None,
) -> HandedOut:  # fmt: skip
    """Lets a judge annotate a release or a finished build by a rubric, in the folder ``out``: asks for what its ledger does not have.

    ``model`` is a name, the path of a YAML file, its content, or an object of one's own. ``turns`` of the sample are judged (None: all), of
    each the texts of ``variants`` (None: all there are), each ``samples`` times. ``ways`` may hold what ``build`` takes of ``ledger``,
    ``offline``, ``requests_to``, ``batch``, ``wait``, ``budget_usd``, ``budget_tokens``, ``part``, ``engine``, ``ray_address`` and
    ``keep_going``.
    With ``attacks`` (as of ``score``; an empty list for all) it is asked about attacked texts of ``attacked_turns`` turns too, into
    ``out/attacks``; their fixed texts are English, or those of the folder ``rules``.

    Raises
    ------
    InputError
        If something is wrong with what is given, or the folder holds other annotations.
    JobError
        If the job could not finish; every answer so far is in the ledger.
    """
    how = RunOptions(**(ways or {}), progress=progress)
    asked = AnnotateOptions(
        release, Path(out), rubric, model, base_url, turns, variants, samples, templates, attacks, attacked_turns, rules
    )
    return asked.jobs().done(how)


@dataclass(frozen=True)
class AnnotateOptions:
    """What is to be judged, into which folder, and how; the names are those of the command line."""

    release: str | Path
    out: Path
    rubric: str | Path
    model: Any
    base_url: str | None
    turns: int | None
    variants: Sequence[str] | None
    samples: int
    templates: str | Path | None
    attacks: Sequence[Any] | None
    attacked_turns: int
    rules: str | Path | None

    def jobs(self) -> AnnotationJobs:
        """What is asked of a judge: about texts, and where attacks are asked for about attacked ones.

        Raises:
            InputError: if something is wrong with what is given; if there is nothing to attack, an attack is unknown, or there are rules
                for no attacks.
        """
        if Path(self.release).is_dir() and self.out.resolve().is_relative_to(Path(self.release).resolve()):
            # It would no more be what its manifest says.
            raise input_error("--out", f'"{self.out}" is inside the folder that is judged', "name a folder outside it")
        job, folder = self._job()
        if self.attacks is None:
            if self.rules:
                raise input_error("--rules", f'"{self.rules}" applies to attacks, but none are requested', "add --attacks, or leave it out")
            return AnnotationJobs(job, self.out, folder)
        if not 1 <= self.attacked_turns <= MOST_ATTACKED:
            fix = f"use a number from 1 to {MOST_ATTACKED:,}"
            raise input_error("--attacked-turns", f"{self.attacked_turns:.3g} is out of range", fix)
        from empathy_eval.raters.judges.attacking import AttackSelection, attacking

        wanted = AttackSelection(tuple(self.attacks), self.attacked_turns, Path(self.rules) if self.rules else None)
        return AnnotationJobs(job, self.out, folder, *attacking(job, folder, wanted))

    def _job(self) -> tuple[AnnotationJob, Path]:
        """The job of annotations, and the folder of what is judged."""
        from empathy_eval.design.rubrics import load_rubric
        from empathy_eval.raters.judges.annotating import AnnotationPlan, annotations_of, judge_of
        from empathy_eval.raters.judges.cases import TEXTS
        from empathy_eval.releases.hub.fetch import release_folder

        names, fix = self.variants or (), f"use some of these: {', '.join(TEXTS)}"
        problems = [Problem("--variants", f'"{name}" is not known', fix + nearest(name, TEXTS)) for name in names if name not in TEXTS]
        for name, count, most in (("--turns", self.turns, MOST_TURNS), ("--samples", self.samples, MOST_SAMPLES)):
            if count is not None and not 1 <= count <= most:
                what = f"{count} is less than 1" if count < 1 else f"{count:.3g} is more than {most:,}"
                problems.append(Problem(name, what, f"name a number from 1 to {most:,}"))
        read = load_rubric(self.rubric)
        refuse(problems)
        given, judge = None, self.model
        if not isinstance(judge, str | Path | Mapping):
            given, judge = judge, {"kind": "given", "model": getattr(judge, "name", None), "endpoint": getattr(judge, "endpoint", None)}
        else:
            judge = judge_of(judge, self.base_url)
        design = AnnotationPlan(self.turns, tuple(name for name in TEXTS if not names or name in names), self.samples)
        folder, templates = release_folder(self.release), Path(self.templates) if self.templates else None
        return annotations_of(folder, read, judge, design, given=given, templates=templates), folder


@dataclass(frozen=True)
class AnnotationJobs:
    """The job of annotations in a folder, and beside it, over the same ledger, that of attacked texts where attacks are asked for.

    ``told`` is what is left out of the attacks and why.
    """

    first: AnnotationJob
    out: Path
    release: Path
    attacked: AnnotationJob | None = None
    told: tuple[str, ...] = ()

    def done(self, ways: RunOptions) -> HandedOut:
        """What comes of the jobs, the second once the first is done; the figures of attacks are kept where both are done whole.

        Batches of the second that are under way are taken in before: no other job may open their ledger.
        """
        from empathy_eval.generation.build_folder import LEDGER
        from empathy_eval.raters.judges.annotations import ATTACKS

        ways.refuse_contradictions("annotate")
        if ways.batch and self.first.config.model.form:
            fix = "leave it out; or write the requests to a file with --requests-to, for a server that processes files"
            raise input_error("--batch", "no provider runs reward models in batches", fix)
        if self.attacked is None:
            return do(self.first, self.out, ways)
        ledger = Path(ways.ledger or self.out / LEDGER)
        second = partial(do, self.attacked, self.out / ATTACKS, replace(ways, ledger=ledger))
        begun = second() if ways.batch and _under_way(ledger, self.attacked.config.identity) else None
        if begun and begun.requests:
            return _both(None, begun)
        handed = do(self.first, self.out, ways)
        if handed.requests:
            return handed
        beside = begun or second()
        if not (beside.requests or ways.part):
            self.table()
        return _both(handed, beside)

    def table(self) -> AttackTable:
        """The table of attacks, which is kept beside what was said of attacked texts."""
        from empathy_eval.base.files import write_whole
        from empathy_eval.raters.judges.annotations import ATTACKS
        from empathy_eval.raters.judges.attacking import attack_table

        table = attack_table(self.out, self.release, self.told)
        write_whole(self.out / ATTACKS / "figures.json", json_text(table.to_json()) + "\n")
        return table


def _under_way(path: Path, identity: str) -> bool:
    """Whether a ledger has batches under way of the job of that identity."""
    from empathy_eval.completions.ledger import Ledger

    if not path.is_file():
        return False
    with Ledger(path, create=False, write=False) as ledger:
        return any(one.build == identity for one in ledger.open_batches())


def _both(first: HandedOut | None, second: HandedOut) -> HandedOut:
    """What comes of both: the second's summary stands beside the first's. The first has nothing that is to be answered elsewhere."""
    from empathy_eval.generation.summary import HandedOut
    from empathy_eval.raters.judges.annotations import ATTACKS

    beside = {ATTACKS: second.summary} if second.summary else {}
    return HandedOut(first.summary if first else None, second.requests, (first.reasons if first else Counter()) + second.reasons, beside)


def _turns(text: str) -> int | None:
    return None if text == "all" else whole(text, "of at least 1, or all")


def _run(options: Namespace) -> int:
    jobs = AnnotateOptions(**{one.name: getattr(options, one.name) for one in fields(AnnotateOptions)}).jobs()
    if options.preview:
        return _previewed(jobs, options)
    from empathy_eval.raters.judges.annotations import read_annotations
    from empathy_eval.raters.judges.judge_quality import judge_quality, quality_text, read_compared

    config = jobs.first.config
    built = "seal" not in config.release
    if built and (options.beside or options.reviews):
        what = f"compare a judge with others on a release, but {options.release} is a build"
        raise input_error(
            "--beside, --reviews", what, "leave them out, or annotate a release of the build: answers in the ledger are not requested again"
        )
    # What it is held against is read before anything is asked: a wrong name costs nothing.
    beside = read_compared(config, options.out, options.beside, options.reviews)

    def closing() -> ClosingMessage:
        if built:
            step = f"to include the annotations in a release: empathy-eval release {options.release} --annotations {options.out} …"
            said = ClosingMessage(step, {})
        else:
            worth = judge_quality(read_annotations(options.out), jobs.release, beside)
            said = ClosingMessage(quality_text(worth), {"worth": worth.to_json()})
        if not jobs.attacked:
            return said
        table = jobs.table()
        return ClosingMessage("\n".join([said.text, "", *attack_lines(table)]), {**said.json, "attacks": table.to_json()})

    return done(options, "annotate", jobs.done, closing)


def _previewed(jobs: AnnotationJobs, options: Namespace) -> int:
    """Prints what would be asked for, of attacked texts too; returns the exit status."""
    from empathy_eval.generation.build_folder import LEDGER, claim_folder
    from empathy_eval.raters.judges.replay import preview

    if options.part or options.engine == "ray" or options.wait is False:
        raise input_error("--preview", "covers the whole job, and sends nothing", "leave out --slice, --engine and --no-wait")
    claim_folder(options.out, jobs.first.config)
    there = options.out / LEDGER
    ledger = options.ledger or (there if there.is_file() else None)
    check_count("--requests", options.requests)
    made = preview(jobs.first, ledger, options.requests)
    more = jobs.attacked and preview(jobs.attacked, ledger, 0)
    if options.json:
        of_attacks = {"attacks": {"answered": more.answered, "estimates": [asdict(one) for one in more.estimates]}} if more else {}
        estimates = [asdict(one) for one in made.estimates]
        told = {"requests": requests_json(made.requests), "answered": made.answered, "estimates": estimates, **of_attacks}
        print(json_text(told, ascii_only=True))
        return 0
    if made.answered:
        print(f"--- {made.answered:,} requests are already answered in {options.ledger or there}; the remaining ones:")
    print(estimate_table(made.estimates))
    if jobs.attacked and more:
        print(f"\n--- also attacked texts of {jobs.attacked.planned():,} turns; {more.answered:,} of their requests are already answered:")
        print(estimate_table(more.estimates))
    print_requests(made.requests)
    return 0


COMMAND = Command(
    annotate,
    "let a judge rate or compare replies by a rubric",
    "Asks a model to judge the replies of a release or a build by a rubric. Keeps the answers in a ledger of their own, so that no "
    "answered request is sent again. The judge never sees which variant it reads, or another variant beside it. A text without a valid "
    "answer stays unannotated.",
    {
        "release=BUILD_OR_RELEASE": Option(f"the release, {A_RELEASE}; or the folder of a finished build", type=str),
        "--out DIR": "the annotation folder of one judge and one rubric",
        "--rubric NAME": Option("a packaged rubric by its name, or a file of your own", type=str),
        "--model NAME": Option("the judge: the name of a model, or a YAML file that describes it", type=str),
        "--base-url URL": "the OpenAI-compatible endpoint of the judge, such as http://localhost:8000/v1",
        "--turns N": Option(
            "how many turns (or dialogues) to judge: a number, or all (default: 2000); a larger number only adds turns. Turns with "
            "controls come first, unless --variants leaves controls out. Both groups are spread evenly over scenarios and manners",
            type=_turns, default=2000,
        ),
        "--variants A,B": Option("the variants to judge (default: all)", action="store", type=lambda text: text.split(",")),
        "--samples K": Option("how many times each text is judged (default: 1)", default=1),
        "--templates DIR": "a folder of judge prompts of your own",
        "--beside DIR": Option(
            "a folder of finished annotations of the release to compare with: by the same rubric, or preferences for ratings; repeatable",
            action="append", type=Path, default=[],
        ),
        "--reviews FILE": Option("the record of `review import`, to compare the judge with people", type=Path),
        **RUN,
        "--preview": Option(
            "send and write nothing: estimate the remaining requests, and with -n show the first ones. Answers in the ledger count as "
            "done, and their averages are used",
            group=ONE_OF,
        ),
        "-n, --requests N": Option("with --preview: show the requests of N turns (default: none)", type=whole, default=0),
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
    made={"ways": RunOptions},
    run=_run,
)  # fmt: skip
