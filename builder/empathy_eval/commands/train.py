"""``train``: training of EmpathyScore on the pairs of a release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.stages import advance
from empathy_eval.base.table_text import TableLine, TableText, aligned, table_text
from empathy_eval.commands.command import ONE_OF, PAPER, RELEASE, Command, Option, OptionGroup

if TYPE_CHECKING:
    from empathy_eval.statistics.estimate import Estimate
    from empathy_eval.training.ablations import Ablation
    from empathy_eval.training.train import TrainedModel

EXAMPLES = """\
examples:
  empathy-eval train build/demo/release --out build/model
  empathy-eval train build/demo/release --out build/model --contrasts equal-closeness
  empathy-eval train build/demo/release --out build/model --contrasts "reference>apathetic" --json
  empathy-eval train build/demo/release --out build/encoder --kind encoder
  empathy-eval train build/demo/release-judged --out build/students --kind students --teacher NAME
  empathy-eval train build/demo/release-judged --out build/ablation --kind students --teacher NAME --ablate
  empathy-eval score build/demo/release --metric empathyscore:model=build/model --split test

Measure a model on a split that it was not trained on. docs/empathyscore.md explains the model, and what it does not show.
"""
SOME_KINDS = OptionGroup("encoders and students")


@takes_paths
def train(
    release: str | Path, out: str | Path, *, kind: str = "plain", contrasts: str | Sequence[str] = ("reference>apathetic",),
    split: str | Sequence[str] = ("train",), teacher: str | None = None, encoder: str | Path | Sequence[str | Path] = (),
    also: Sequence[str | Path] = (), objective: str | None = None, flow: str | None = None, shared: bool = False,
    max_tokens: int | None = None, rate: float | None = None, epochs: int | None = None, margin: float | None = None,
    rank_weight: float | None = None, seed: int | Sequence[int] = (), ablate: bool = False, alpha: float | None = None,
    ratings: str | Path | None = None, progress: Callable[[int], None] | None = None,
) -> TrainedModel | Ablation:  # fmt: skip
    """Trains a model of EmpathyScore from the pairs of a release, and writes it into the folder ``out``.

    The release is a folder, or a Hub name such as ``org/name@v1.0.0``. ``metrics`` of the result, and the model card in the folder, have
    the accuracy on splits that were not used for training. ``progress`` is called with the number of pairs read and of training examples.
    The same data gives the same bytes; for students, on the same machine. A stopped training is resumed by the same call.

    The kinds ``encoder`` and ``students`` take an ``encoder``: a folder, or a name of the Hub. Students take a ``teacher``, a judge whose
    annotations the release has, and then have two parts; ``also``, CSV files of labelled data (docs/empathyscore.md); and settings: the
    ``objective`` (both, regression or ranking), the ``flow`` (rated, or strategy), whether the parts have one ``shared`` encoder,
    ``max_tokens``, the learning ``rate``, ``epochs``, ``margin``, ``rank_weight`` (lambda) and ``seed``.

    With ``ablate`` students of the teacher are trained in several ways, by each encoder and seed, into folders of ``out``, and held against
    the teacher on a split that none was trained on, with ``ratings`` against people too. ``alpha`` is the weight of flow there.

    Raises
    ------
    InputError
        If it is no release or cannot be fetched, a kind, contrast or split is unknown, the release has no such pairs, an option does not
        fit the kind, packages are missing, or ``out`` holds something else.
    JobError
        If the folder cannot be written.
    """
    given = {
        "teacher": teacher, "also": tuple(map(Path, also)), "objective": objective, "flow": flow, "shared": shared or None,
        "max_tokens": max_tokens, "rate": rate, "epochs": epochs, "margin": margin, "rank_weight": rank_weight,
        "encoder": tuple(map(str, _several(encoder))), "seed": _several(seed),
    }  # fmt: skip
    ablation = {"ablate": ablate or None, "alpha": alpha, "ratings": ratings and Path(ratings)}
    inputs = release, _several(contrasts), _several(split), partial(_done, progress or (lambda pairs: None))
    return _train(inputs, kind, Path(out), _without_defaults(given), _without_defaults(ablation))


def _without_defaults(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value not in (None, ())}


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _train(
    inputs: tuple[Any, ...], kind: str, out: Path, given: dict[str, Any], ablation: dict[str, Any]
) -> TrainedModel | Ablation:  # fmt: skip
    """Trains a kind of model from ``inputs`` (release, contrasts, splits, progress) with the arguments that are not defaults."""
    from empathy_eval.base.errors import refuse
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.training.ablations import AblationPlan, ablate
    from empathy_eval.training.task import TrainingSchedule, check_arguments, check_settings, make_task
    from empathy_eval.training.train import train

    settings = {name: value for name, value in given.items() if name not in ("teacher", "also", "encoder", "seed")}
    seeds, is_ablated = given.get("seed", (TrainingSchedule.seed,)), "ablate" in ablation
    several: dict[str, Any] = {name: given[name] for name in ("encoder", "seed") if name in given}
    problems = [*_misused(ablation, several), *check_arguments(kind, {**given, **({"ablate": True} if is_ablated else {})})]
    refuse(dict.fromkeys(problems or [problem for seed in seeds for problem in check_settings({**settings, "seed": seed})]))
    release, *rest = inputs
    task = make_task(release_folder(release), *rest)
    encoders, taught = given.get("encoder", (task.encoder,)), {name: given[name] for name in ("teacher", "also") if name in given}
    task = replace(task, **taught, encoder=encoders[0], schedule=replace(task.schedule, **settings, seed=seeds[0]))
    if not is_ablated:
        return train(task, kind, out)
    return ablate(AblationPlan(task, encoders, seeds, ablation.get("alpha", 0.5), ablation.get("ratings")), out)


def _misused(ablation: Mapping[str, Any], several: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
    """Yields problems of arguments that only an ablation takes, and of its weight of flow."""
    if "ablate" not in ablation:
        fix = "add --ablate, or leave it out"
        yield from (Problem(f"--{name}", "needs --ablate", fix) for name in ablation)
        yield from (Problem(f"--{name}", f"is given {len(some)} times", fix) for name, some in several.items() if len(some) > 1)
    if not 0 <= (alpha := ablation.get("alpha", 0)) <= 1:
        yield Problem("--alpha", f'"{alpha}" is out of range', "use a number from 0 to 1: the weight of flow")


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
        "--encoder FOLDER": Option(
            "a folder or a model on the Hub, only safetensors (default: a small one); repeatable with --ablate", group=SOME_KINDS, type=str
        ),
        "--teacher NAME": Option('the judge whose annotations by the rubric "teacher" students learn, flow and content', group=SOME_KINDS),
        "--also CSV": Option("CSV files of labelled data for content", group=SOME_KINDS, action="extend", nargs="+"),
        "--objective {both,regression,ranking}": Option("the training objective of students (default: both)", group=SOME_KINDS),
        "--flow {rated,strategy}": Option(
            "what students learn of flow: the teacher's rating (rated, default), or the validity of the strategy that it named, under what "
            "it thought right before (strategy)",
            group=SOME_KINDS,
        ),
        "--shared": Option("use one encoder for flow and content instead of two", group=SOME_KINDS),
        "--max-tokens N": Option("read the last N tokens of a conversation with its reply (default: 512)", group=SOME_KINDS),
        "--rate R": Option("the learning rate (default: 2e-5)", group=SOME_KINDS),
        "--epochs N": Option("the most epochs (default: 5)", group=SOME_KINDS),
        "--margin M": Option("the margin of the ranking loss (default: 0.1)", group=SOME_KINDS),
        "--rank-weight W": Option("lambda, the weight of the ranking loss (default: 0.5)", group=SOME_KINDS),
        "--seed N": Option("the seed of the heads, the order and the dropout (default: 42); repeatable with --ablate", group=SOME_KINDS),
        "--ablate": Option(
            "train students in full, with each loss alone and with a shared encoder, into folders of --out, and compare all of them, and "
            "the score without flow and without content, with the teacher on a split that none was trained on",
            group=SOME_KINDS,
        ),
        "--alpha A": Option("with --ablate: the weight of flow in the score (default: 0.5)", group=SOME_KINDS),
        "--ratings TABLE": Option("with --ablate: compare with people's ratings, the table of review import, too", group=SOME_KINDS),
        "--json": Option("print the configuration and the metrics of the model as JSON", ONE_OF),
        **PAPER,
    },
    EXAMPLES,
    staged=True,
)


def model_table(model: TrainedModel) -> TableText:
    """Returns the training data and the accuracies of a model as lines of text."""
    config, trained = model.config, model.metrics["trained_on"]
    release, single = config["release"], config["settings"].get("singles")
    by = ", ".join(config["contrasts"]) or f"by {config['settings'].get('teacher') or 'labelled data'}"
    learned = f"{trained['pairs']} pairs ({by})" + (f" and {single} single texts" if single else "")
    splits = ", ".join(config["splits"])
    lines = [f"model: {model.folder}, {config['kind']}, from {learned} of {release['name']} {release['version']}, {splits}"]
    for split, tables in model.metrics["splits"].items():
        for contrast in ("stance", "empathetic - apathetic", *config["contrasts"]):
            if contrast in tables:
                title = f"{split}, {'at equal closeness' if contrast == 'stance' else contrast}"
                lines += ["", *_rows(title, tables[contrast])]
    if not model.metrics["splits"]:
        lines.append("no split was held out, so the accuracy on unseen texts is not known")
    return table_text(lines)


def _rows(head: str, rows: Mapping[str, Any]) -> list[TableLine]:
    bounds = {name: "" if row["low"] is None else f"[{row['low']:.3f}, {row['high']:.3f}]" for name, row in rows.items()}
    cells = [(f"  {name}", f"{row['accuracy']:.3f}", bounds[name]) for name, row in rows.items()]
    return aligned([(head, "accuracy", "95 % interval"), *cells], right=(1,))


WITH_TEACHER = {"r": "r", "rho": "rho", "mean error": "mean error"}
OF_PEOPLE = {"people: r": "r", "people: rho": "rho", "drop in r": "drop in r", "drop in rho": "drop in rho"}
# By title of a block its figures with their headings.
BLOCKS: dict[str, dict[str, str]] = {
    **{
        f"{part}, with the teacher": {f"{part}: {name}": title for name, title in WITH_TEACHER.items()}
        for part in ("flow", "content", "score")
    },
    "at equal closeness": {"accuracy": "accuracy"},
    "flow with content": {"flow and content": "r", "flow and content, within variants": "r within variants"},
    "with people": OF_PEOPLE,
}


def ablation_table(result: Ablation) -> TableText:
    """Returns correlations of students with the teacher and with people, their accuracy, and the paper's figures, a block each."""
    lines = [f"{result.folder}: {result.texts} texts of {result.split} with the teacher's values; intervals over dialogues"]
    several = len({(row.encoder, row.seed) for row in result.rows if row.encoder}) > 1
    for title, keys in BLOCKS.items():
        rows = [
            (f"  {row.row}" + (f", {row.encoder}, seed {row.seed}" if several and row.encoder else ""),
             *(_figure(row.figures.get(key)) for key in keys))
            for row in result.rows if any(key in row.figures for key in keys)
        ]  # fmt: skip
        if rows and keys is OF_PEOPLE:
            for row in result.paper:
                rows.append((f"  paper: {row['row']}", *(f"{row[key]:.3f}" if key in row else "" for key in keys.values())))
        lines += ["", *aligned([(title, *keys.values()), *rows], len(keys) + 1)] if rows else []
    return table_text(lines, dict.fromkeys(figure.signature for row in result.rows for figure in row.figures.values()))


def _figure(estimate: Estimate | None) -> str:
    return "" if estimate is None else "not defined" if estimate.value is None else str(estimate)
