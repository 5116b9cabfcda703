"""Metrics by name: built-in ones, installed plug-ins and ``module:name``, with settings, and which of them a manifest may name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from empathy_eval.base import plugins
from empathy_eval.base.errors import Finding, Problem, collecting, input_error, refuse
from empathy_eval.base.parsing import ParseError, yaml_value
from empathy_eval.base.schemas import violations
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import stray_settings
from empathy_eval.design.language import ANY_LANGUAGE_METRICS, ENGLISH_METRICS
from empathy_eval.metrics.bertscore import at_hand, is_hash
from empathy_eval.metrics.protocol import Diversity, Metric

GROUP = "empathy_eval.metrics"
# Name: where it is, and the settings that the name stands for.
BUILT_IN: dict[str, tuple[str, dict[str, Any]]] = {
    "bleu": ("empathy_eval.metrics.ngrams:Bleu", {}),
    "rouge-l": ("empathy_eval.metrics.lexical:RougeL", {}),
    "meteor": ("empathy_eval.metrics.ngrams:Meteor", {}),
    "chrf": ("empathy_eval.metrics.ngrams:ChrF", {}),
    "bertscore": ("empathy_eval.metrics.bertscore:BertScore", {}),
    "vader": ("empathy_eval.metrics.lexical:Vader", {}),
    "sentlink": ("empathy_eval.metrics.lexical:Sentlink", {}),
    "length": ("empathy_eval.metrics.lexical:Length", {}),
    "empathyscore": ("empathy_eval.metrics.empathy_score.model:EmpathyScore", {}),
    "empathyscore-content": ("empathy_eval.metrics.empathy_score.model:EmpathyScore", {"part": "content"}),
    "empathyscore-flow": ("empathy_eval.metrics.empathy_score.model:EmpathyScore", {"part": "flow"}),
    "nll": ("empathy_eval.metrics.nll:Nll", {}),
    "dist-1": ("empathy_eval.metrics.ngrams:Dist", {"order": 1}),
    "dist-2": ("empathy_eval.metrics.ngrams:Dist", {"order": 2}),
    "dist-4": ("empathy_eval.metrics.ngrams:Dist", {"order": 4}),
}
# What is in a report only where its model is named: a release of before has no row of it.
NEEDS_MODEL = ("bertscore", "nll", "empathyscore", "empathyscore-content", "empathyscore-flow")
# What is in a report only where it is named.
ONLY_BY_NAME = ("sentlink",)
# Metrics that count tokens, which are those of the texts' language.
COUNTS_TOKENS = ("bleu", "rouge-l", "length", "dist-1", "dist-2", "dist-4")
# The extra whose packages a metric needs.
EXTRAS = {"bertscore": "bertscore", "nll": "local"}
METRIC = ("name", "signature", "places", "reads", "higher_is_better", "statistics", "aggregate", "scores")
DIVERSITY = ("name", "signature", "measure")
READS = {"reference", "context"}
# The columns beside which a report writes a column a metric.
TAKEN = ("pair_id", "variant")
UNFIT = "look at them, then type those that you want (NAME:key=value), or trust the metric with `report --trust-metrics NAME`"
# One of the settings that are typed behind a name: a value with a comma stands in quotes.
SETTING = re.compile(r"""([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,"'][^,]*)(?:,(?!$)|$)""")


@dataclass(frozen=True)
class MetricSelection:
    """The metrics of a list of names, in order, and the language of their texts.

    ``typed`` maps a typed name to the metric's own name; ``signatures`` maps it to the settings.
    """

    metrics: tuple[Metric, ...]
    diversities: tuple[Diversity, ...]
    language: str = ENGLISH
    typed: Mapping[str, str] = field(default_factory=dict, compare=False)
    signatures: Mapping[str, str] = field(default_factory=dict, compare=False)


def default_names(settings: Mapping[str, Any]) -> list[str]:
    """The default metrics of a report: all built-in ones but ``ONLY_BY_NAME``; those that need a model only if it is configured."""
    return [name for name in BUILT_IN if name not in ONLY_BY_NAME and (name not in NEEDS_MODEL or name in settings)]


def names_of(settings: Mapping[str, Any], without: Collection[str] = (), where: str = "manifest.json: without") -> list[str]:
    """The metrics of ``report`` in a configuration, except those that its release leaves out; ``where`` is used in errors.

    Shortcuts of the configuration may be left out too.

    Raises:
        InputError: if one to leave out is not in the configuration, or if none is left.
    """
    names = list(dict.fromkeys(settings.get("metrics") or default_names(settings)))
    known = [*names, *settings.get("shortcuts", ())]
    fix = f"leave out only what the configuration has, and not all of it: {', '.join(known)}"
    strange = [name for name in dict.fromkeys(without) if name not in known]
    refuse(Problem(where, f'"{name}" is not a metric of the configuration', fix) for name in strange)
    if left := [name for name in names if name not in without]:
        return left
    raise input_error(where, "leaves no metric", fix)


def known() -> dict[str, list[str]]:
    """All metric names, with the packages that offer each: more than one where they clash."""
    return plugins.known_names(GROUP, BUILT_IN)


def find(names: Sequence[Any], settings: Mapping[str, Any], *, own: Collection[str] = (), language: str = ENGLISH) -> MetricSelection:
    """The metrics of these names, which the user typed, configured or trusts; ``settings`` is ``report`` of a configuration.

    A metric object may stand among the names. Settings of names in ``own`` come from the user; others come from a manifest, and must fit
    their schema. Settings typed behind a name, as in ``bertscore:layer=5``, override both.

    Raises:
        InputError: for unknown or ambiguous names, and for metrics that cannot be created or support only English; all at once.
    """
    problems = stray_settings(settings, "report")
    loaded, typed, signatures = list[Any](), dict[str, str](), dict[str, str]()
    for name in [name for index, name in enumerate(names) if name not in names[:index]]:
        with collecting(problems):
            loaded.append(_checked(str(name), _load(name, settings, own, language) if isinstance(name, str) else name))
            if isinstance(name, str):
                signatures[name] = loaded[-1].signature
                typed |= {name: loaded[-1].name} if hasattr(loaded[-1], "statistics") else {}
    twice = [metric.name for index, metric in enumerate(loaded) if metric.name in [other.name for other in loaded[:index]]]
    problems += [Problem(f'metric "{name}"', "is the name of two metrics", "leave one out") for name in twice]
    clashing = [metric.name for metric in loaded if metric.name in TAKEN]
    problems += [Problem(f'metric "{name}"', "is the name of a column beside the scores", "rename the metric") for name in clashing]
    refuse(problems)
    metrics = [metric for metric in loaded if hasattr(metric, "statistics")]
    return MetricSelection(tuple(metrics), tuple(metric for metric in loaded if metric not in metrics), language, typed, signatures)


def settings_fault(name: str, settings: Mapping[str, Any]) -> str:
    """Why a manifest's settings of a metric are not accepted; empty if they are."""
    own = {name: settings[name]} if name in settings else {}
    return "; ".join(f"{place} {what}" for place, what, _ in violations(own, "trusted_settings"))


def _load(text: str, settings: Mapping[str, Any], own: Collection[str], language: str) -> Any:
    name, typed = typed_settings(text)
    if language != ENGLISH and name in ENGLISH_METRICS:
        what = f'supports only English, but the texts are in the language "{language}"'
        raise input_error(f'metric "{text}"', what, f"leave it out, or use one of {', '.join(ANY_LANGUAGE_METRICS)}")
    configured = settings.get(name, {})
    if name not in own and configured.keys() - typed.keys() and (wrong := settings_fault(name, settings)):
        raise input_error(f'metric "{name}"', f"the manifest has settings for it that are not accepted: {wrong}", UNFIT)
    chosen = {**configured, **typed}
    if name in BUILT_IN and chosen:
        breaches = violations({name: chosen}, "metric_settings", by_hand=True)
        refuse(Problem(f'metric "{text}": {place}', what, fix) for place, what, fix in breaches)
    _, fixed = BUILT_IN.get(name, ("", {}))
    fixed = {**fixed, "language": language} if language != ENGLISH and name in COUNTS_TOKENS else fixed
    return plugins.load(GROUP, name, {**fixed, **chosen}, {name: where for name, (where, _) in BUILT_IN.items()})


def typed_settings(text: str) -> tuple[str, dict[str, Any]]:
    """The name and settings of a typed metric: ``name`` or ``module:name``, optionally with ``:key=value,other=value``.

    Raises:
        InputError: if the settings cannot be read.
    """
    if "=" not in text:
        return text, {}
    name, _, key = text.partition("=")[0].rpartition(":")
    rest = text[len(name) + bool(name) :]
    settings: dict[str, Any] = {}
    while rest:
        if not (match := SETTING.match(rest)) or not name:
            fix = "write NAME:key=value,other=value; quote a value with commas"
            raise input_error(f'metric "{text}"', f'"{rest}" is not a setting', fix)
        key, value = match.groups()
        try:
            settings[key], twice = yaml_value(value), key in settings
        except (yaml.YAMLError, ParseError) as error:
            raise input_error(f'metric "{text}"', f'{key}: "{value}" cannot be read', "write a number, true, false or a text") from error
        if twice or not isinstance(settings[key], str | int | float | None):
            what = f'has "{key}" twice' if twice else f'{key}: "{value}" is not a number, true, false or a text'
            raise input_error(f'metric "{text}"', what, "give each setting once, and quote texts that YAML reads as another type")
        rest = rest[match.end() :]
    return name, settings


def _checked(name: str, thing: Any) -> Any:
    """The object, if it is a metric or a diversity."""
    where = f'metric "{name}"'
    needed = DIVERSITY if hasattr(thing, "measure") and not hasattr(thing, "statistics") else METRIC
    if missing := [attribute for attribute in needed if not hasattr(thing, attribute)]:
        raise input_error(where, f"has no {', '.join(missing)}", "see docs/metrics.md for what a metric has")
    if needed == METRIC and (unknown := sorted(set(thing.reads) - READS)):
        what = f"reads {', '.join(map(repr, unknown))}, which no pair has"
        raise input_error(where, what, "use reference, context or both; the text itself is always read")
    return thing


# The one border between the metrics that strangers name in a manifest and what is run.


@dataclass(frozen=True)
class ManifestMetrics:
    """The metrics of a manifest that are measured, those with trusted settings, and those left out."""

    names: tuple[str, ...]
    own: frozenset[str]
    left: tuple[Finding, ...]


def manifest_metrics(
    settings: Mapping[str, Any], trusted: Collection[str] = (), without: Collection[str] = (), pinned: Sequence[str] = ()
) -> ManifestMetrics:
    """The metrics of a manifest's ``report`` that are accepted: built-in and installed names with valid settings, and those the user
    trusts.

    Those in ``without`` are left out. If the configuration names none, the ``pinned`` ones of the manifest are used, whatever is built in
    here. Nothing is loaded to decide this.

    Raises:
        InputError: as :func:`names_of`.
    """
    names = list(pinned) if pinned and not settings.get("metrics") else names_of(settings, without)
    why = {name: reason for name in names if name not in trusted and (reason := _reason(name, settings))}
    where, fix = "manifest.json: configuration: report: metrics", "review its code, then allow it with --trust-metrics"
    left = (Finding(where, f'"{name}" is not recomputed: {reason}', f"{fix} '{name}'", "unchecked", name) for name, reason in why.items())
    return ManifestMetrics(tuple(name for name in names if name not in why), frozenset(trusted) & set(names), tuple(left))


def _reason(name: str, settings: Mapping[str, Any]) -> str:
    """Why a metric of a manifest is not accepted; empty if it is."""
    if ":" in name:
        return "it is code that the manifest names, not a built-in or installed metric"
    offers = known().get(name, [])
    if not offers:
        return "it is not installed here"
    if len(offers) > 1:
        return f"it is offered by {' and by '.join(offers)}"
    if wrong := settings_fault(name, settings):
        return f"its settings are not accepted from a manifest: {wrong}"
    model = settings[name]["model"] if name == "bertscore" and name in settings else ""
    return f'the weights "{model}" are not available' if is_hash(model) and not at_hand(model) else ""
