"""Report of a release: tables, figures and one self-contained page."""

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
from empathy_eval.evaluation.attacks.attack_scores import report_sample_size
from empathy_eval.evaluation.attacks.registry import find_attacks
from empathy_eval.evaluation.corpus.descriptives import count_manners, examples, length_by_part, lengths, release_summary, strategy_use
from empathy_eval.evaluation.corpus.pairs import LENGTH_WITHIN, check_rows
from empathy_eval.evaluation.fairness.fairness import FairnessTest
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import EXCHANGES, ResamplingSettings
from empathy_eval.evaluation.inversion.results import MetricRow, ReleaseTables
from empathy_eval.evaluation.inversion.rows import CrossedTable
from empathy_eval.evaluation.measure import (
    ITEMS,
    ExtraMeasurements,
    TextScores,
    add_text_tables,
    score_references,
    score_tables,
    text_scores,
    write_text_scores,
)
from empathy_eval.evaluation.shortcuts.texts import Embedding, embedding_of
from empathy_eval.metrics.bertscore import is_listed, published
from empathy_eval.metrics.empathy_score.model import is_packaged, published_model
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
    """Returns the configuration for a manifest: models that are not well known are named by the hash of their weights.

    The model of a metric in ``without`` becomes "left-out", because its weights may be missing here.
    """
    settings = configuration["report"]
    models = {name: settings[name]["model"] for name in names_of(settings) if "model" in settings.get(name, {}) and name in NEEDS_MODEL}
    if not models:
        return configuration

    def named(name: str, model: str) -> str:
        if name == "nll":
            return weights_of(model, settings[name].get("revision"), "report: nll: model").name if name not in without else "left-out"
        listed, shown = (is_listed, published) if name == "bertscore" else (is_packaged, published_model)
        return shown(model) if listed(model) or name not in without else "left-out"

    renamed = {name: {**settings[name], "model": named(name, model)} for name, model in models.items()}
    return {**configuration, "report": {**settings, **renamed}}


def paper_figures(configuration: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Returns the paper's figures of the same metrics and, where it has some, of the same settings."""
    ours = configuration["report"]
    figures = read_yaml(data_folder("release") / "paper.yaml", "paper")
    same = [row for row in figures if all(ours.get(name, {}).items() >= settings.items() for name, settings in row.get("of", {}).items())]
    return {row["metric"]: {name: row[name] for name in PAIR_VARIANTS} for row in same}


# Model names without a family.
NAMELESS = {"seed-bank", "given"}


def family_of(model: str) -> str:
    """Returns the family of a model by its name, such as ``llama`` for ``meta-llama/Llama-3.1-8B``; empty for nameless models."""
    name = model.partition("@")[0].rstrip("/").rpartition("/")[2].lower()
    if name in NAMELESS:
        return ""
    known: dict[str, list[str]] = read_yaml(data_folder("release") / "model_families.yaml", "model_families")
    starts = [(start, family) for family, some in known.items() for start in some if re.match(rf"{re.escape(start)}(?![a-z])", name)]
    if starts:
        return max(starts, key=lambda start: len(start[0]))[1]
    letters = re.match("[a-z]+", name)
    return letters.group() if letters else name


def shared_families(configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the families that both wrote and score the texts of a release, by the model names of its configuration.

    Each has its ``family``, the models that are its ``writers``, and by metric the models that are its ``judges``.
    """
    wrote = [model for role, model in configuration["models"].items() if role in (*ROLES, CROSSED.role)]
    writers = sorted({model.get("model", model["kind"]) for model in wrote})
    named = {name: settings.get("model") for name, settings in configuration["report"].items() if isinstance(settings, dict)}
    judges = {name: model for name, model in named.items() if isinstance(model, str)}
    families = {writer: family_of(writer) for writer in (*writers, *judges.values())}
    shared = {families[writer] for writer in writers} & {families[judge] for judge in judges.values()} - {""}
    rows = []
    for family in sorted(shared):
        scorers = {name: model for name, model in judges.items() if families[model] == family}
        rows.append({"family": family, "writers": [writer for writer in writers if families[writer] == family], "judges": scorers})
    return rows


# Provenance of the tables of a report in a folder of its own.
PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class ReportMetrics(MetricSelection):
    """Metrics of a report, and the optional embedding of its shortcut audit."""

    embedding: Embedding | None = None


@dataclass(frozen=True, repr=False)
class Report(Printable):
    """Tables of a report, the sizes behind them (``about``), and ``sections`` on the texts: ``lengths``, ``course``, ``examples``,
    ``making`` and, if the release has annotations, ``judges``.

    ``scores`` are those of single texts; a report from JSON has none. ``left`` lists metrics of the manifest that were not run.
    """

    measured: ReleaseTables
    about: dict[str, Any]
    sections: dict[str, Any]
    scores: TextScores | None = field(default=None, repr=False, compare=False)
    left: tuple[Finding, ...] = ()

    @property
    def provenance(self) -> Provenance | None:
        """Provenance; None while the release is being written."""
        return self.measured.provenance

    @property
    def headline(self) -> dict[str, Estimate]:
        """Accuracy at equal closeness by metric, with its interval."""
        return self.measured.headline

    def head(self) -> Sequence[str]:
        """Returns provenance and settings."""
        return self.measured.head()

    @property
    def crossed(self) -> CrossedTable | None:
        """Results on crossed items; None for a release without them."""
        return self.measured.crossed

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON values."""
        return {"about": self.about, **self.measured.to_json(), **self.sections}

    def to_pandas(self) -> pd.DataFrame:
        """Returns the tables in long form (:meth:`empathy_eval.evaluation.inversion.results.ReleaseTables.to_pandas`)."""
        return self.measured.to_pandas()


def report(release_dir: Path, out: Path, *, trusted: Collection[str] = (), scoring: Scoring = PLAIN) -> Report:
    """Measures a release again with the metrics of its manifest, and writes the report to ``out``.

    Built-in and installed metrics are run, and those named in ``trusted``.

    Raises:
        InputError: if the folder is no release, no metric is left to run, or ``out`` holds something else.
    """
    manifest = read_manifest(release_dir)
    metrics, left = release_metrics(manifest, trusted)
    if not metrics.metrics and not metrics.diversities:
        raise InputError(left)
    check_rows(release_dir)
    with whole_folder(out, made_by=TABLES) as folder:
        report = replace(measure_release(release_dir, manifest, metrics, scoring), left=left)
        write_report(report, folder, manifest)
        provenance = Provenance.of(
            release_dir, metrics=[row.metric for row in report.measured.inversion], **asdict(resampling_settings(manifest))
        )
        # In its own file, so that the tables equal those of the release to the byte.
        write_whole(folder / PROVENANCE, json_text(provenance.to_json()) + "\n")
        return replace(report, measured=report.measured.of(provenance))


def release_metrics(manifest: dict[str, Any], trusted: Collection[str] = ()) -> tuple[ReportMetrics, tuple[Finding, ...]]:
    """Returns the metrics of a manifest that may run here, and findings on those that may not.

    Raises:
        InputError: if a metric cannot be loaded, or the manifest leaves out a metric that it does not have.
    """
    configuration, without = manifest["configuration"], manifest.get("without", ())
    selected = manifest_metrics(configuration["report"], trusted, without, [metric["metric"] for metric in manifest.get("metrics", ())])
    return _load_metrics(configuration, selected.names, selected.own, without), selected.left


def configured_metrics(configuration: dict[str, Any], without: Collection[str] = ()) -> ReportMetrics:
    """Returns the metrics of the user's configuration: those that ``report`` names, except ``without``.

    Raises:
        InputError: if a metric is unknown or cannot be loaded, or ``without`` names none of them.
    """
    names = names_of(configuration["report"], without, "--without")
    return _load_metrics(configuration, names, names, without)


def _load_metrics(configuration: dict[str, Any], names: Sequence[str], own: Collection[str], without: Collection[str]) -> ReportMetrics:
    """Loads the metrics and the embedding; ``own`` may be code. Raises all problems at once."""
    settings, problems, selection, embedding = configuration["report"], list[Problem](), MetricSelection((), ()), None
    with collecting(problems):
        selection = find(names, settings, own=own, language=language_of(configuration))
    with collecting(problems):
        embedding = embedding_of(settings, without, selection.metrics)
    refuse(problems)
    return ReportMetrics(**vars(selection), embedding=embedding)


def pinned_metrics(metrics: MetricSelection) -> list[dict[str, str]]:
    """Returns the manifest's list of metrics: requested name and signature."""
    return [{"metric": name, "signature": signature} for name, signature in metrics.signatures.items()]


def changed_signatures(metrics: MetricSelection, manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (metric, difference) of metrics whose signature here differs from the manifest."""
    for metric in manifest.get("metrics", ()):
        signature = metrics.signatures.get(metric["metric"], metric["signature"])
        if signature != metric["signature"]:
            yield metric["metric"], f'was measured with "{metric["signature"]}", but here its signature is "{signature}"'


def unpinned_metrics(manifest: Mapping[str, Any]) -> list[str]:
    """Returns default metrics of this version that the manifest does not pin."""
    settings, pinned_names = manifest["configuration"]["report"], {metric["metric"] for metric in manifest.get("metrics", ())}
    known = default_names(settings) if pinned_names and not settings.get("metrics") else []
    return [name for name in known if name not in pinned_names and name not in manifest.get("without", ())]


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
    """Returns the canonical text of the tables."""
    return json_text(tables) + "\n"


def page_text(report: Report) -> str:
    """Returns the page of a report as HTML."""
    return page(report.measured, report.about, report.sections, _charts(report))


def draw(report: Report, folder: Path) -> None:
    """Writes the figures of a report, each as SVG and PNG."""
    for chart in _charts(report):
        draw_chart(chart, folder)
    draw_lengths(report.sections["lengths"], folder)
    draw_course(report.sections["course"], folder)
    draw_named(phases_named(report.sections), folder)
    draw_depth(panels_of(report.sections), folder)


def _charts(report: Report) -> list[Chart]:
    judges = judges_charts(report.sections.get("judges"), report.measured)
    return [*charts_of(report.measured), *judges, *delta_charts(report.sections)]


def measure_release(release_dir: Path, facts: dict[str, Any], metrics: ReportMetrics, scoring: Scoring = PLAIN) -> Report:
    """Measures a release: metrics, shortcut audit, judges, built-in attacks and fairness.

    Raises:
        InputError: if the folder holds no pairs.
    """
    configuration = facts["configuration"]
    evaluation = Evaluation(release_dir, metrics, resampling_settings(facts), scoring)
    if not len(evaluation.pairs):
        raise input_error(release_dir, "holds no pairs", "release a build with accepted pairs")
    sections = {
        "lengths": lengths(evaluation.pairs, evaluation.controls),
        **({"ways": counts} if (counts := count_manners(evaluation.pairs, evaluation.controls)) else {}),
        "course": strategy_use(release_dir),
        "depth": length_by_part(evaluation.pairs, evaluation.controls, release_dir),
        "examples": examples(release_dir, metrics.language),
        "making": release_summary(facts),
        **(judge_section(release_dir, facts) if facts.get("annotations") else {}),
    }
    attacks, fairness = find_attacks(language=metrics.language, hint=ONLY_SCORED), FairnessTest(evaluation, hint=ONLY_SCORED)
    extra = ExtraMeasurements(attacks, report_sample_size(len(evaluation.pairs)), fairness, embedding=metrics.embedding)
    references, scores = score_references(evaluation), evaluation.scores()
    of_every_text = text_scores(references, evaluation.pairs, evaluation.controls, scores.rated)
    tables = score_tables(evaluation, scores, extra)
    del scores  # the audit needs their memory
    measured = ReleaseTables(**add_text_tables(evaluation, tables, extra))
    return Report(measured, _about(evaluation, configuration), sections, replace(of_every_text, word_margins=measured.word_margins))


def resampling_settings(facts: dict[str, Any]) -> ResamplingSettings:
    """Returns the resampling settings of a release's report."""
    return ResamplingSettings(facts["configuration"]["report"]["bootstrap"], EXCHANGES, facts["configuration"]["seed"])


def _about(evaluation: Evaluation, configuration: dict[str, Any]) -> dict[str, Any]:
    """Returns the sizes of the release, the limits of its checks, the paper's figures and shared model families."""
    return {
        "pairs": len(evaluation.pairs),
        "dialogues": len(set(evaluation.pairs.dialogues)),
        "controls": len(evaluation.controls),
        "sources": sorted(set(column(evaluation.folder, "pairs", "source"))),
        "edit_ratio_below": configuration["checks"]["edit_ratio_below"],
        "overlap_at_most": configuration["checks"]["overlap_at_most"],
        "length_within": LENGTH_WITHIN,
        "paper": paper_figures(configuration),
        "families": shared_families(configuration),
    }


FAULT = re.compile(r"metric (.+?): (?:(\d+) of (\d+) texts, first )?(.+?): (.*)\n  Fix: .*", re.DOTALL)


def report_from_json(tables: Mapping[str, Any]) -> Report:
    """Returns the report from its JSON, without scores of single texts and word margins of pairs.

    Raises:
        ValueError: if the JSON of the result would differ.
    """
    try:
        measured: ReleaseTables = fields_from_json(ReleaseTables, tables, FORMS)
        about = tables["about"]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"they lack or misuse a part of a report: {error}") from error
    known = {"about", *map(json_name, fields(ReleaseTables))}
    report = Report(measured, about, {name: value for name, value in tables.items() if name not in known})
    if json.loads(json.dumps(report.to_json())) != tables:
        raise ValueError("they hold other or more values than the tables of a report")
    return report


def _row(values: Mapping[str, Any]) -> MetricRow:
    row: MetricRow = fields_from_json(MetricRow, {**values, "left_out": values["coverage"]["left_out"]}, FORMS)
    return row


def _fault(text: str) -> MetricFault:
    if not (match := FAULT.fullmatch(text)):
        raise TypeError(f'"{text[:80]}" is not a fault of a metric')
    metric, texts, of, where, what = match.groups()
    return MetricFault(metric, where, what, int(texts or 0), int(of or 0))


# Readers of values whose JSON has another form.
FORMS: dict[Any, Callable[[Any], Any]] = {MetricRow: _row, MetricFault: _fault}
