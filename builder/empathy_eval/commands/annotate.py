"""``annotate``: let a judge rate or compare the replies of a release by a rubric."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.files import data_folder
from empathy_eval.commands.options import A_RELEASE
from empathy_eval.commands.ways import Ways, add_ways, do, done

if TYPE_CHECKING:
    from empathy_eval.generation.summary import Handed, Summary
    from empathy_eval.raters.judges.annotating import Annotations
    from empathy_eval.raters.judges.worth import Worth

# Far more than any release has, and what a manifest takes.
MOST_TURNS, MOST_SAMPLES = 1_000_000_000, 10_000
EXAMPLES = """\
examples:
  empathy-eval annotate build/demo/release --out build/judged --rubric teacher --model NAME --base-url http://localhost:8000/v1 --turns 200
  empathy-eval annotate build/demo/release --out build/by-hand --rubric warmer --model by-hand --turns 30 --requests-to ask.jsonl

--model is the name of a model, or a YAML file with what a configuration has under one of its models (endpoint, prices, limits).
Once it is finished it prints what the judge is worth; --beside and --reviews add whom it is held against.
The rubrics: {rubrics}; or a file of your own. The same command again resumes; with more --turns it goes on where it was.
"""


def annotate(
    release: str | Path, out: str | Path, *, rubric: str | Path, model: str | Path | Mapping[str, Any] | Any, base_url: str | None = None,
    turns: int | None = 2000, variants: Sequence[str] | None = None, samples: int = 1,
    templates: str | Path | None = None, ways: Mapping[str, Any] | None = None,
    progress: Callable[[Summary], None] = lambda summary: None,
) -> Handed:  # fmt: skip
    """Lets a judge annotate a release by a rubric, in the folder ``out``: asks for what its ledger does not have.

    ``model`` is a name, the path of a YAML file, its content, or an object of one's own. ``turns`` of the sample are judged (None: all), of
    each the texts of ``variants`` (None: all there are), each ``samples`` times. ``ways`` may hold what ``build`` takes of ``ledger``,
    ``offline``, ``requests_to``, ``batch``, ``wait``, ``budget_usd``, ``budget_tokens``, ``part``, ``engine`` and ``ray_address``.

    Raises:
        InputError: if something is wrong with what is given, or the folder holds other annotations.
        JobError: if the job could not finish; every answer so far is in the ledger.
    """
    _refuse_inside(release, Path(out))
    how = Ways(**(ways or {}), progress=progress)
    how.refuse_contradictions("annotate")
    return do(_job(release, rubric, model, base_url, turns, variants, samples, templates), Path(out), how)


def _refuse_inside(release: str | Path, out: Path) -> None:
    """Raises an :class:`InputError` for a folder in the release itself, which would no more be what its manifest says."""
    if Path(release).is_dir() and out.resolve().is_relative_to(Path(release).resolve()):
        raise input_error("--out", f'"{out}" is in the release that is judged', "name a folder outside of it")


def _job(
    release: str | Path, rubric: str | Path, model: Any, base_url: str | None, turns: int | None, variants: Sequence[str] | None,
    samples: int, templates: str | Path | None,
) -> Annotations:  # fmt: skip
    from empathy_eval.design.rubrics import load_rubric
    from empathy_eval.raters.judges.annotating import Design, annotations_of, judge_of
    from empathy_eval.raters.judges.cases import TEXTS
    from empathy_eval.releases.fetch import release_folder

    fix = f"use some of these: {', '.join(TEXTS)}"
    problems = [Problem("--variants", f'"{name}" is not known', fix) for name in variants or () if name not in TEXTS]
    for name, count, most in (("--turns", turns, MOST_TURNS), ("--samples", samples, MOST_SAMPLES)):
        if count is not None and not 1 <= count <= most:
            what = f"{count} is not at least 1" if count < 1 else f"{count:.3g} is more than {most:,}"
            problems.append(Problem(name, what, f"name a number from 1 to {most:,}"))
    if problems:
        raise InputError(problems)
    given, judge = None, model
    if not isinstance(model, str | Path | Mapping):
        given, judge = model, {"kind": "given", "model": model.name, "endpoint": model.endpoint}
    else:
        judge = judge_of(model, base_url)
    design = Design(turns, tuple(name for name in TEXTS if not variants or name in variants), samples)
    found = load_rubric(rubric)
    if found.kind == "reward":
        raise input_error(f'rubric "{found.name}"', "is for reward models, which annotate does not ask yet", "choose another rubric")
    return annotations_of(release_folder(release), found, judge, design, given=given, templates=Path(templates) if templates else None)


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    rubrics = sorted(path.stem for path in data_folder("rubrics").glob("*.yaml"))
    verb = verbs.add_parser(
        "annotate",
        help="let a judge rate or compare replies by a rubric",
        description="Asks a model to judge the replies of a release by a rubric, through a ledger of its own: nothing answered is asked "
        "for twice. The judge never sees which variant it reads, nor another one beside it. What it cannot say in form stays unannotated.",
        epilog=EXAMPLES.format(rubrics=", ".join(rubrics)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("release", metavar="RELEASE", help=f"the release, {A_RELEASE}")
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of one judge and rubric")
    verb.add_argument("--rubric", required=True, metavar="NAME", help="a packaged rubric by its name, or a file of your own")
    verb.add_argument("--model", required=True, metavar="NAME", help="the judge: the name of a model, or a YAML file that describes it")
    verb.add_argument("--base-url", metavar="URL", help="the OpenAI-compatible endpoint of the judge, such as http://localhost:8000/v1")
    verb.add_argument(
        "--turns", type=_turns, default=2000, metavar="N",
        help="how many turns (or dialogues) are judged, evenly over scenarios and manners: a number, or all; more only add (default: 2000)",
    )  # fmt: skip
    verb.add_argument("--variants", type=lambda text: text.split(","), metavar="A,B", help="the texts that are judged (default: all)")
    verb.add_argument("--samples", type=int, default=1, metavar="K", help="how often each text is judged (default: 1)")
    verb.add_argument("--templates", type=Path, metavar="DIR", help="a folder of judge prompts of your own")
    verb.add_argument(
        "--beside", type=Path, action="append", default=[], metavar="DIR",
        help="finished annotations of the release to hold these against: by the same rubric, or preferences beside ratings; repeatable",
    )  # fmt: skip
    verb.add_argument("--reviews", type=Path, metavar="FILE", help="the record of `review import`, to hold the judge against people")
    add_ways(verb)
    verb.set_defaults(run=run)


def _turns(text: str) -> int | None:
    if text != "all" and not re.fullmatch(r"-?[0-9]{1,30}", text):
        raise argparse.ArgumentTypeError(f'"{text[:80]}" is no number; write one from 1 on, or all')
    return None if text == "all" else int(text)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    _refuse_inside(options.release, options.out)
    job = _job(
        options.release, options.rubric, options.model, options.base_url, options.turns, options.variants, options.samples,
        options.templates,
    )  # fmt: skip
    from empathy_eval.raters.judges.folder import read_annotations
    from empathy_eval.raters.judges.worth import beside_of, worth_of
    from empathy_eval.releases.fetch import release_folder

    # What it is held against is read before anything is asked: a wrong name costs nothing.
    beside = beside_of(job.config, options.out, options.beside, options.reviews)

    def work(ways: Ways) -> Handed:
        ways.refuse_contradictions("annotate")
        return do(job, options.out, ways)

    def worth() -> Said:
        return Said(worth_of(read_annotations(options.out), release_folder(options.release), beside))

    return done(options, "annotate", work, worth)


@dataclass(frozen=True)
class Said:
    """What a judge is worth, as it is printed."""

    worth: Worth

    def to_json(self) -> dict[str, Any]:
        """Under ``worth``, beside what a summary has."""
        return {"worth": self.worth.to_json()}

    def __str__(self) -> str:
        from empathy_eval.raters.judges.worth_table import shown

        return shown(self.worth)
