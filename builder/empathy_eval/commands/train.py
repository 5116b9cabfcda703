"""``train``: training of EmpathyScore on the pairs of a release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.paths import takes_paths
from empathy_eval.base.stages import advance
from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.commands.command import Command
from empathy_eval.commands.options import ONE_OF, PAPER, RELEASE, Option, OptionGroup

if TYPE_CHECKING:
    from empathy_eval.training.train import TrainedModel

EXAMPLES = """\
examples:
  empathy-eval train build/demo/release --out build/model
  empathy-eval train build/demo/release --out build/model --contrasts equal-closeness
  empathy-eval train build/demo/release --out build/model --contrasts "reference>apathetic" --json
  empathy-eval train build/demo/release --out build/encoder --kind encoder
  empathy-eval train build/demo/release-judged --out build/students --kind students --teacher NAME
  empathy-eval score build/demo/release --metric empathyscore:model=build/model --split test

Measure a model on a split that it was not trained on. docs/empathyscore.md explains the model, and what it does not show.
"""
KINDS = (
    "the kind of model: plain (default), a weighted sum of counted features; encoder, the same with embeddings of a frozen encoder; "
    "students, fine-tuned encoders"
)
CONTRASTS = (
    '"WINNER>LOSER", which text should score higher: reference>apathetic (default), near_empathetic>apathetic, '
    "empathetic>far_apathetic, empathetic>apathetic, fitting>other (the two pairs of each crossed item), or equal-closeness for the "
    "second and third; repeatable"
)
SOME_KINDS = OptionGroup("encoders and students")


@takes_paths
def train(
    release: str | Path, out: str | Path, *, kind: str = "plain", contrasts: str | Sequence[str] = ("reference>apathetic",),
    split: str | Sequence[str] = ("train",), teacher: str | None = None, encoder: str | Path | None = None,
    also: Sequence[str | Path] = (), objective: str | None = None, shared: bool = False, max_tokens: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TrainedModel:  # fmt: skip
    """Trains a model of EmpathyScore from the pairs of a release, and writes it into the folder ``out``.

    The release is a folder, or a Hub name such as ``org/name@v1.0.0``. ``metrics`` of the result, and the model card in the folder, have
    the accuracy on splits that were not used for training. ``progress`` is called with the number of pairs read and of training examples.
    The same data gives the same bytes; for students, on the same machine. A stopped training is resumed by the same call.

    The kinds ``encoder`` and ``students`` take an ``encoder``. Only students take ``teacher`` (they then have two parts), ``also``,
    ``objective``, ``shared`` and ``max_tokens``.

    Raises
    ------
    InputError
        If it is no release or cannot be fetched, a kind, contrast or split is unknown, the release has no such pairs, an option does not
        fit the kind, packages are missing, or ``out`` holds something else.
    JobError
        If the folder cannot be written.
    """
    from empathy_eval.base.errors import refuse
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.training.task import stray, task_of
    from empathy_eval.training.train import train

    pairs, splits = ((value,) if isinstance(value, str) else value for value in (contrasts, split))
    schedule: dict[str, Any] = {"objective": objective, "shared": shared or None, "max_tokens": max_tokens}
    sources: dict[str, Any] = {"teacher": teacher, "encoder": encoder and str(encoder), "also": tuple(map(Path, also)) or None}
    refuse(stray(kind, {name: value for name, value in {**sources, **schedule}.items() if value is not None}))
    task = task_of(release_folder(release), pairs, splits, partial(_done, progress or (lambda pairs: None)))
    course = replace(task.course, **{name: value for name, value in schedule.items() if value is not None})
    task = replace(task, course=course, **{name: value for name, value in sources.items() if value is not None})
    return train(task, kind, Path(out))


def _done(progress: Callable[[int], None], pairs: int) -> None:
    advance(pairs)
    progress(pairs)


COMMAND = Command(
    train,
    "train a model of EmpathyScore on a release",
    "Trains a model to recognise empathetic replies on pairs of a release, and writes it for use by score and reports. Reports its "
    "accuracy on the splits that it has not seen, beside words alone, length and positive words.",
    {
        **RELEASE,
        "--out MODEL": "the folder of the model; an older model in it is replaced",
        "--kind {plain,encoder,students}": "the kind of model: plain (default), a weighted sum of counted features; encoder, the same "
        "with embeddings of a frozen encoder; students, fine-tuned encoders",
        "--contrasts PAIRS": '"WINNER>LOSER", which text should score higher: reference>apathetic (default), near_empathetic>apathetic, '
        "empathetic>far_apathetic, empathetic>apathetic, fitting>other (the two pairs of each crossed item), or equal-closeness for the "
        "second and third; repeatable",
        "--split {train,validation,test}": "train on this split (default: train); repeatable; the model is evaluated on the splits that "
        "are left out",
        "--encoder FOLDER": Option("a folder or a model on the Hub, only safetensors (default: a small one)", group=SOME_KINDS, type=str),
        "--teacher NAME": Option('the judge whose annotations by the rubric "teacher" students learn, flow and content', group=SOME_KINDS),
        "--also CSV": Option("CSV files of labelled data for content", group=SOME_KINDS, action="extend", nargs="+"),
        "--objective {both,regression,ranking}": Option("the training objective of students (default: both)", group=SOME_KINDS),
        "--shared": Option("use one encoder for flow and content instead of two", group=SOME_KINDS),
        "--max-tokens N": Option("read the last N tokens of a conversation with its reply (default: 512)", group=SOME_KINDS),
        "--json": Option("print the configuration and the metrics of the model as JSON", ONE_OF),
        **PAPER,
    },
    EXAMPLES,
    staged=True,
)


def model_table(model: TrainedModel) -> TableText:
    """Returns the training data and the accuracies of a model as lines of text."""
    return table_text(_lines(model))


def _lines(model: TrainedModel) -> Iterator[str]:
    config, trained = model.config, model.metrics["trained_on"]
    release, single = config["release"], config["settings"].get("singles")
    by = ", ".join(config["contrasts"]) or f"by {config['settings'].get('teacher') or 'labelled data'}"
    learned = f"{trained['pairs']} pairs ({by})" + (f" and {single} single texts" if single else "")
    splits = ", ".join(config["splits"])
    yield f"model: {model.folder}, {config['kind']}, from {learned} of {release['name']} {release['version']}, {splits}"
    for split, tables in model.metrics["splits"].items():
        for contrast in ("stance", "empathetic - apathetic", *config["contrasts"]):
            if contrast in tables:
                yield ""
                yield from _rows(f"{split}, {'at equal closeness' if contrast == 'stance' else contrast}", tables[contrast])
    if not model.metrics["splits"]:
        yield "no split was held out, so the accuracy on unseen texts is not known"


def _rows(head: str, rows: Mapping[str, Any]) -> Iterator[str]:
    bounds = {name: "" if row["low"] is None else f"[{row['low']:.3f}, {row['high']:.3f}]" for name, row in rows.items()}
    cells = [(f"  {name}", f"{row['accuracy']:.3f}", bounds[name]) for name, row in rows.items()]
    yield from aligned([(head, "accuracy", "95 % interval"), *cells], right=(1,))
