"""``annotate``: let a judge rate or compare the replies of a release or a build by a rubric."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import InputError, Problem, input_error, nearest
from empathy_eval.base.files import data_folder
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import Command
from empathy_eval.commands.options import A_RELEASE, ONE_OF, Option, check_count, whole
from empathy_eval.commands.preview import estimate_table, print_requests, requests_json
from empathy_eval.commands.under_attack import TURNS, Under, WithTable
from empathy_eval.commands.ways import RUN, RunOptions, do, done

if TYPE_CHECKING:
    from empathy_eval.generation.summary import Handed, Summary
    from empathy_eval.raters.judges.annotating import Annotations
    from empathy_eval.raters.judges.worth import Worth

# Far more than any release has, and what a manifest takes.
MOST_TURNS, MOST_SAMPLES = 1_000_000_000, 10_000
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
    attacked_turns: int = TURNS, rules: str | Path | None = None,
    progress: Callable[[Summary], None] = lambda summary: None,
) -> Handed:  # fmt: skip
    """Lets a judge annotate a release or a finished build by a rubric, in the folder ``out``: asks for what its ledger does not have.

    ``model`` is a name, the path of a YAML file, its content, or an object of one's own. ``turns`` of the sample are judged (None: all), of
    each the texts of ``variants`` (None: all there are), each ``samples`` times. ``ways`` may hold what ``build`` takes of ``ledger``,
    ``offline``, ``requests_to``, ``batch``, ``wait``, ``budget_usd``, ``budget_tokens``, ``part``, ``engine``, ``ray_address`` and
    ``keep_going``.
    With ``attacks`` (as of ``score``; an empty list for all) it is asked about attacked texts of ``attacked_turns`` turns too, into
    ``out/attacks``; their fixed texts are English, or those of the folder ``rules``.

    Raises:
        InputError: if something is wrong with what is given, or the folder holds other annotations.
        JobError: if the job could not finish; every answer so far is in the ledger.
    """
    _refuse_inside(release, Path(out))
    how = RunOptions(**(ways or {}), progress=progress)
    job = _job(release, rubric, model, base_url, turns, variants, samples, templates)
    _refuse(how, job)
    under = Under.of(release, job, Path(out), attacks, attacked_turns, rules)
    first = partial(do, job, Path(out), how)
    return under.then(first, how) if under else first()


def _refuse(ways: RunOptions, job: Annotations) -> None:
    """Raises an :class:`InputError` for ways that do not go together, or not with the judge."""
    ways.refuse_contradictions("annotate")
    if ways.batch and job.config.model.form:
        fix = "leave it out; or write the requests to a file with --requests-to, for a server that processes files"
        raise input_error("--batch", "no provider runs reward models in batches", fix)


def _refuse_inside(release: str | Path, out: Path) -> None:
    """Raises an :class:`InputError` for a folder in the release itself, which would no more be what its manifest says."""
    if Path(release).is_dir() and out.resolve().is_relative_to(Path(release).resolve()):
        raise input_error("--out", f'"{out}" is inside the folder that is judged', "name a folder outside it")


def _job(
    release: str | Path, rubric: str | Path, model: Any, base_url: str | None, turns: int | None, variants: Sequence[str] | None,
    samples: int, templates: str | Path | None,
) -> Annotations:  # fmt: skip
    from empathy_eval.design.rubrics import load_rubric
    from empathy_eval.raters.judges.annotating import Design, annotations_of, judge_of
    from empathy_eval.raters.judges.sources import TEXTS
    from empathy_eval.releases.hub.fetch import release_folder

    fix = f"use some of these: {', '.join(TEXTS)}"
    problems = [Problem("--variants", f'"{name}" is not known', fix + nearest(name, TEXTS)) for name in variants or () if name not in TEXTS]
    for name, count, most in (("--turns", turns, MOST_TURNS), ("--samples", samples, MOST_SAMPLES)):
        if count is not None and not 1 <= count <= most:
            what = f"{count} is less than 1" if count < 1 else f"{count:.3g} is more than {most:,}"
            problems.append(Problem(name, what, f"name a number from 1 to {most:,}"))
    read = load_rubric(rubric)
    if variants and read.unit == "dialogue":
        what = f'"{",".join(variants)}" cannot be judged by "{read.name}": it rates whole dialogues, which hold only the reference'
        problems.append(Problem("--variants", what, "leave it out, or use a rubric for replies"))
    if problems:
        raise InputError(problems)
    given, judge = None, model
    if not isinstance(model, str | Path | Mapping):
        given, judge = model, {"kind": "given", "model": getattr(model, "name", None), "endpoint": getattr(model, "endpoint", None)}
    else:
        judge = judge_of(model, base_url)
    design = Design(turns, tuple(name for name in TEXTS if not variants or name in variants), samples)
    return annotations_of(release_folder(release), read, judge, design, given=given, templates=Path(templates) if templates else None)


def _turns(text: str) -> int | None:
    return None if text == "all" else whole(text, "of at least 1, or all")


def _run(options: Namespace) -> int:
    _refuse_inside(options.release, options.out)
    job = _job(
        options.release, options.rubric, options.model, options.base_url, options.turns, options.variants, options.samples,
        options.templates,
    )  # fmt: skip
    under = Under.of(options.release, job, options.out, options.attacks, options.attacked_turns, options.rules)
    if options.preview:
        return _previewed(job, options, under)
    from empathy_eval.raters.judges.folder import read_annotations
    from empathy_eval.raters.judges.worth import beside_of, worth_of
    from empathy_eval.releases.hub.fetch import release_folder

    built = "seal" not in job.config.release
    if built and (options.beside or options.reviews):
        what = f"compare a judge with others on a release, but {options.release} is a build"
        raise input_error(
            "--beside, --reviews", what, "leave them out, or annotate a release of the build: answers in the ledger are not requested again"
        )
    # What it is held against is read before anything is asked: a wrong name costs nothing.
    beside = beside_of(job.config, options.out, options.beside, options.reviews)

    def work(ways: RunOptions) -> Handed:
        _refuse(ways, job)
        first = partial(do, job, options.out, ways)
        return under.then(first, ways) if under else first()

    def worth() -> Said | Unsaid:
        if built:
            return Unsaid(f"to include the annotations in a release: empathy-eval release {options.release} --annotations {options.out} …")
        return Said(worth_of(read_annotations(options.out), release_folder(options.release), beside))

    return done(options, "annotate", work, lambda: WithTable(worth(), under.table()) if under else worth())


def _previewed(job: Annotations, options: Namespace, under: Under | None) -> int:
    """Prints what would be asked for, of attacked texts too; returns the exit status."""
    from empathy_eval.generation.build_folder import LEDGER, claim_folder
    from empathy_eval.raters.judges.preview import preview

    if options.part or options.engine == "ray" or options.wait is False:
        raise input_error("--preview", "covers the whole job, and sends nothing", "leave out --slice, --engine and --no-wait")
    claim_folder(options.out, job.config)
    there = options.out / LEDGER
    ledger = options.ledger or (there if there.is_file() else None)
    check_count("--requests", options.requests)
    made = preview(job, ledger, options.requests)
    more = under and preview(under.job, ledger, 0)
    if options.json:
        of_attacks = {"attacks": {"answered": more.answered, "estimates": [asdict(one) for one in more.estimates]}} if more else {}
        estimates = [asdict(one) for one in made.estimates]
        told = {"requests": requests_json(made.requests), "answered": made.answered, "estimates": estimates, **of_attacks}
        print(json_text(told, ascii_only=True))
        return 0
    if made.answered:
        print(f"--- {made.answered:,} requests are already answered in {options.ledger or there}; the remaining ones:")
    print(estimate_table(made.estimates))
    if under and more:
        print(f"\n--- also attacked texts of {under.job.planned():,} turns; {more.answered:,} of their requests are already answered:")
        print(estimate_table(more.estimates))
    print_requests(made.requests)
    return 0


@dataclass(frozen=True)
class Unsaid:
    """Where to go on from annotations of a build: what a judge is worth is reckoned over a release."""

    step: str

    def to_json(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def __str__(self) -> str:
        return self.step


@dataclass(frozen=True)
class Said:
    """What a judge is worth, as it is printed."""

    worth: Worth

    def to_json(self) -> dict[str, Any]:
        """Under ``worth``, beside what a summary has."""
        return {"worth": self.worth.to_json()}

    def __str__(self) -> str:
        from empathy_eval.raters.judges.worth import shown

        return shown(self.worth)


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
            f"with --attacks: attack the first N turns of the sample; a larger N only adds turns (default: {TURNS})", default=TURNS
        ),
        "--rules DIR": "with --attacks: the folder with attacks.yaml and names.yaml of the language",
    },
    EXAMPLES.format(rubrics=", ".join(sorted(path.stem for path in data_folder("rubrics").glob("*.yaml")))),
    made={"ways": RunOptions},
    run=_run,
)  # fmt: skip
