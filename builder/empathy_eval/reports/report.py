"""The report: how common metrics rate the variants, as tables, figures and one self-contained page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.causal_lm import weights_of
from empathy_eval.base.errors import Finding, InputError, Problem, collecting, input_error, refuse
from empathy_eval.base.files import data_folder, whole_folder, write_whole
from empathy_eval.base.json_text import fields_from_json, json_name, json_text
from empathy_eval.base.printed import Printable
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.canary import canary_entry
from empathy_eval.design.configuration import ROLES, language_of
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.dataset import TABLES, column, read_manifest
from empathy_eval.design.kinds import CROSSED
from empathy_eval.design.language import ONLY_SCORED
from empathy_eval.design.provenance import Provenance
from empathy_eval.evaluation.attacks.attacked import few_of
from empathy_eval.evaluation.attacks.registry import find_attacks
from empathy_eval.evaluation.corpus.descriptives import course, depth, examples, lengths, making, ways
from empathy_eval.evaluation.corpus.pairs import LENGTH_WITHIN, refuse_odd_rows
from empathy_eval.evaluation.fairness.fairness import FairnessTest
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import EXCHANGES, ResamplingSettings
from empathy_eval.evaluation.inversion.results import MetricRow, ReleaseTables
from empathy_eval.evaluation.inversion.rows import CrossedTable
from empathy_eval.evaluation.inversion.text_scores import ITEMS, TextScores, of_references, text_scores, write_text_scores
from empathy_eval.evaluation.measure import ExtraMeasurements, of_scores, of_texts
from empathy_eval.evaluation.shortcuts.texts import Embedding, embedding_of
from empathy_eval.metrics.bertscore import is_listed, published
from empathy_eval.metrics.empathy_score.model_folder import is_packaged, published_model
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.registry import NEEDS_MODEL, MetricSelection, default_names, find, manifest_metrics, names_of
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.raters.judges.judge_section import judge_section
from empathy_eval.reports.charts import (
    Chart,
    charts_of,
    delta_charts,
    draw_chart,
    draw_course,
    draw_depth,
    draw_lengths,
    draw_named,
    panels_of,
    phases_named,
)
from empathy_eval.reports.page import judges_charts, page
from empathy_eval.statistics.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd


def published_configuration(configuration: dict[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
    """The configuration as a manifest shows it: a model that is not a well-known one is named by the hash of its weights.

    Of one whose metric is left out only that is said: its weights need not be here.
    """
    settings = configuration["report"]
    there = {name: settings[name]["model"] for name in names_of(settings) if "model" in settings.get(name, {}) and name in NEEDS_MODEL}
    if not there:
        return configuration

    def named(name: str, model: str) -> str:
        if name == "nll":
            return weights_of(model, settings[name].get("revision"), "report: nll: model").name if name not in without else "left-out"
        listed, shown = (is_listed, published) if name == "bertscore" else (is_packaged, published_model)
        return shown(model) if listed(model) or name not in without else "left-out"

    return {**configuration, "report": {**settings, **{name: {**settings[name], "model": named(name, one)} for name, one in there.items()}}}


def paper_figures(configuration: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The paper's figures that stand beside ours: of the same metric and, where there is one, the same model."""
    ours = configuration["report"].get("bertscore", {})
    figures = read_yaml(data_folder("release") / "paper.yaml", "paper")
    same = [one for one in figures if "model" not in one or (one["model"], one["layer"]) == (ours.get("model"), ours.get("layer"))]
    return {one["metric"]: {name: one[name] for name in PAIR_VARIANTS} for one in same}


# What stands for no model of a name of its own.
NAMELESS = {"seed-bank", "given"}


def family_of(model: str) -> str:
    """The family of a model by its name, such as ``llama`` for ``meta-llama/Llama-3.1-8B``; empty for what has no name of its own."""
    name = model.partition("@")[0].rstrip("/").rpartition("/")[2].lower()
    if name in NAMELESS:
        return ""
    known: dict[str, list[str]] = read_yaml(data_folder("release") / "model_families.yaml", "model_families")
    starts = [(start, family) for family, some in known.items() for start in some if re.match(rf"{re.escape(start)}(?![a-z])", name)]
    if starts:
        return max(starts, key=lambda one: len(one[0]))[1]
    letters = re.match("[a-z]+", name)
    return letters.group() if letters else name


def shared_families(configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The families that both wrote the texts of a release and score them, by the model names of its configuration.

    Each has its ``family``, the models that are its ``writers``, and by metric the models that are its ``judges``.
    """
    wrote = [one for role, one in configuration["models"].items() if role in (*ROLES, CROSSED.role)]
    writers = sorted({one.get("model", one["kind"]) for one in wrote})
    named = {name: one.get("model") for name, one in configuration["report"].items() if isinstance(one, dict)}
    judges = {name: model for name, model in named.items() if isinstance(model, str)}
    families = {one: family_of(one) for one in (*writers, *judges.values())}
    shared = {families[one] for one in writers} & {families[one] for one in judges.values()} - {""}
    return [
        {
            "family": family,
            "writers": [one for one in writers if families[one] == family],
            "judges": {name: model for name, model in judges.items() if families[model] == family},
        }
        for family in sorted(shared)
    ]


# What the tables of a report in a folder of its own are of.
PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class ReportMetrics(MetricSelection):
    """The metrics of a report, and the embedding of its shortcut audit where one is asked for."""

    embedding: Embedding | None = None


@dataclass(frozen=True, repr=False)
class Report(Printable):
    """The tables of a report, what they are over, and what is told of the texts: ``lengths``, ``course``, ``examples``, ``making``, and of
    the judges whose annotations the release holds: ``judges``.

    ``scores`` are those of every single text; a report that was made from its tables has none. ``left`` are the metrics of the manifest
    that were not run.
    """

    measured: ReleaseTables
    about: dict[str, Any]
    told: dict[str, Any]
    scores: TextScores | None = field(default=None, repr=False, compare=False)
    left: tuple[Finding, ...] = ()

    @property
    def provenance(self) -> Provenance | None:
        """What it is of; of a release that is being written that is not known yet."""
        return self.measured.provenance

    @property
    def headline(self) -> dict[str, Estimate]:
        """By metric the number to report: the accuracy at equal closeness, with its interval."""
        return self.measured.headline

    def head(self) -> Sequence[str]:
        """What it is of, and the settings."""
        return self.measured.head()

    @property
    def crossed(self) -> CrossedTable | None:
        """What metrics and shortcuts make of crossed items; None for a release without them."""
        return self.measured.crossed

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {"about": self.about, **self.measured.to_json(), **self.told}

    def to_pandas(self) -> pd.DataFrame:
        """The tables in the long form, as :meth:`empathy_eval.evaluation.inversion.results.ReleaseTables.to_pandas`."""
        return self.measured.to_pandas()


def report(release_dir: Path, out: Path, *, trusted: Collection[str] = (), scoring: Scoring = PLAIN) -> Report:
    """Measures a release anew, with the metrics its manifest names, into a folder of its own.

    Of those metrics the built-in and the installed ones are run, and those that are ``trusted`` by name.

    Raises:
        InputError: if the folder is no release, no metric is left to run, or ``out`` holds something else.
    """
    manifest = read_manifest(release_dir)
    found, left = metrics_of(manifest, trusted)
    if not found.metrics and not found.diversities:
        raise InputError(left)
    refuse_odd_rows(release_dir)
    with whole_folder(out, made_by=TABLES) as folder:
        report = replace(measure_release(release_dir, manifest, found, scoring), left=left)
        write_report(report, folder, manifest)
        provenance = Provenance.of(release_dir, metrics=[row.metric for row in report.measured.inversion], **asdict(chance_of(manifest)))
        # Beside the tables, which are those of the release to the byte.
        write_whole(folder / PROVENANCE, json_text(provenance.to_json()) + "\n")
        return replace(report, measured=report.measured.of(provenance))


def metrics_of(manifest: dict[str, Any], trusted: Collection[str] = ()) -> tuple[ReportMetrics, tuple[Finding, ...]]:
    """The metrics that a manifest may have run here, and those that it may not.

    Raises:
        InputError: if one that it may cannot be made, or what it leaves out is not in it.
    """
    configuration, without = manifest["configuration"], manifest.get("without", ())
    settings, language = configuration["report"], language_of(configuration)
    taken = manifest_metrics(settings, trusted, without, [one["metric"] for one in manifest.get("metrics", ())])
    return _made(lambda: find(taken.names, settings, own=taken.own, language=language), settings, without), taken.left


def own_metrics(configuration: dict[str, Any], without: Collection[str] = ()) -> ReportMetrics:
    """The metrics of a configuration of one's own: whatever its part ``report`` names and is not to be left out.

    Raises:
        InputError: if one of them is unknown or cannot be made, or what is to be left out is not there.
    """
    settings, language = configuration["report"], language_of(configuration)
    names = names_of(settings, without, "--without")
    return _made(lambda: find(names, settings, own=names, language=language), settings, without)


def _made(metrics: Callable[[], MetricSelection], settings: dict[str, Any], without: Collection[str]) -> ReportMetrics:
    """The metrics and the embedding; what keeps any of them from being made is told at once."""
    problems, found, embedding = list[Problem](), MetricSelection((), ()), None
    with collecting(problems):
        found = metrics()
    with collecting(problems):
        embedding = embedding_of(settings, without, found.metrics)
    refuse(problems)
    return ReportMetrics(**vars(found), embedding=embedding)


def pinned(found: MetricSelection) -> list[dict[str, str]]:
    """What a manifest says of the metrics of its report: the name by which each was asked for, and the signature of its settings."""
    return [{"metric": name, "signature": signature} for name, signature in found.signatures.items()]


def otherwise(found: MetricSelection, manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(metric, what) of metrics whose settings here are not those that a manifest pins."""
    for one in manifest.get("metrics", ()):
        here = found.signatures.get(one["metric"], one["signature"])
        if here != one["signature"]:
            yield one["metric"], f'was measured with "{one["signature"]}", but here its signature is "{here}"'


def newer(manifest: Mapping[str, Any]) -> list[str]:
    """The metrics that a report without a list of its own would have here, and that the manifest does not pin."""
    settings, taken = manifest["configuration"]["report"], {one["metric"] for one in manifest.get("metrics", ())}
    known = default_names(settings) if taken and not settings.get("metrics") else []
    return [name for name in known if name not in taken and name not in manifest.get("without", ())]


def write_report(report: Report, out: Path, facts: dict[str, Any]) -> None:
    """Writes ``index.html``, the tables as JSON, ``figures/`` and the score of every text into ``out``.

    ``facts`` is the manifest of the release, or as much of it as is known while the release is written: all but ``files`` and ``seal``.
    """
    if report.scores:
        write_text_scores(out / ITEMS, report.scores, canary_entry(facts))
    write_whole(out / TABLES, tables_text(report.to_json()))
    draw(report, out / "figures")
    write_whole(out / "index.html", page_text(report))


def tables_text(tables: dict[str, Any]) -> str:
    """The one text form of the tables."""
    return json_text(tables) + "\n"


def page_text(report: Report) -> str:
    """The page of a report as HTML."""
    return page(report.measured, report.about, report.told, _charts(report))


def draw(report: Report, folder: Path) -> None:
    """Writes the figures of a report, each as SVG and PNG."""
    for chart in _charts(report):
        draw_chart(chart, folder)
    draw_lengths(report.told["lengths"], folder)
    draw_course(report.told["course"], folder)
    draw_named(phases_named(report.told), folder)
    draw_depth(panels_of(report.told), folder)


def _charts(report: Report) -> list[Chart]:
    judges = judges_charts(report.told.get("judges"), report.measured)
    return [*charts_of(report.measured), *judges, *delta_charts(report.told)]


def measure_release(release_dir: Path, facts: dict[str, Any], found: ReportMetrics, scoring: Scoring = PLAIN) -> Report:
    """The tables of a release by these metrics, its shortcut audit, what it holds of judges, the built-in attacks, and fairness.

    Raises:
        InputError: if the folder holds no pairs.
    """
    configuration = facts["configuration"]
    stand = Evaluation(release_dir, found, chance_of(facts), scoring)
    if not len(stand.pairs):
        raise input_error(release_dir, "holds no pairs", "release a build with accepted pairs")
    told = {
        "lengths": lengths(stand.pairs, stand.controls),
        **({"ways": counts} if (counts := ways(stand.pairs, stand.controls)) else {}),
        "course": course(release_dir),
        "depth": depth(stand.pairs, stand.controls, release_dir),
        "examples": examples(release_dir, found.language),
        "making": making(facts),
        **judge_section(release_dir, facts),
    }
    attacks, fairness = find_attacks(language=found.language, hint=ONLY_SCORED), FairnessTest(stand, hint=ONLY_SCORED)
    beside = ExtraMeasurements(attacks, few_of(len(stand.pairs)), fairness, embedding=found.embedding)
    references, scores = of_references(stand), stand.scores()
    of_every_text = text_scores(references, stand.pairs, stand.controls, scores.rated)
    tables = of_scores(stand, scores, beside)
    del scores  # the audit needs their memory
    measured = ReleaseTables(**of_texts(stand, tables, beside))
    return Report(measured, _about(stand, configuration), told, replace(of_every_text, word_margins=measured.word_margins))


def chance_of(facts: dict[str, Any]) -> ResamplingSettings:
    """How the report of a release reckons with chance."""
    return ResamplingSettings(facts["configuration"]["report"]["bootstrap"], EXCHANGES, facts["configuration"]["seed"])


def _about(stand: Evaluation, configuration: dict[str, Any]) -> dict[str, Any]:
    """What the tables are over, and what stands beside them."""
    return {
        "pairs": len(stand.pairs),
        "dialogues": len(set(stand.pairs.dialogues)),
        "controls": len(stand.controls),
        "sources": sorted(set(column(stand.folder, "pairs", "source"))),
        "edit_ratio_below": configuration["checks"]["edit_ratio_below"],
        "overlap_at_most": configuration["checks"]["overlap_at_most"],
        "length_within": LENGTH_WITHIN,
        "paper": paper_figures(configuration),
        "families": shared_families(configuration),
    }


FAULT = re.compile(r"metric (.+?): (?:(\d+) of (\d+) texts, first )?(.+?): (.*)\n  Fix: .*", re.DOTALL)


def retold(tables: Mapping[str, Any]) -> Report:
    """The report that these tables tell, without the scores of single texts and without the word margins of pairs.

    Raises:
        ValueError: if they are not the tables of a report: made again from it they would say something else.
    """
    try:
        measured: ReleaseTables = fields_from_json(ReleaseTables, tables, FORMS)
        about = tables["about"]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"they lack or misuse a part of a report: {error}") from error
    known = {"about", *map(json_name, fields(ReleaseTables))}
    found = Report(measured, about, {name: value for name, value in tables.items() if name not in known})
    if json.loads(json.dumps(found.to_json())) != tables:
        raise ValueError("they hold other or more values than the tables of a report")
    return found


def _row(told: Mapping[str, Any]) -> MetricRow:
    found: MetricRow = fields_from_json(MetricRow, {**told, "left_out": told["coverage"]["left_out"]}, FORMS)
    return found


def _fault(told: str) -> MetricFault:
    if not (found := FAULT.fullmatch(told)):
        raise TypeError(f'"{told[:80]}" is not a fault of a metric')
    metric, texts, of, where, what = found.groups()
    return MetricFault(metric, where, what, int(texts or 0), int(of or 0))


# What does not stand in the tables as it is.
FORMS: dict[Any, Callable[[Any], Any]] = {MetricRow: _row, MetricFault: _fault}
