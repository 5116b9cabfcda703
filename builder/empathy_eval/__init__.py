"""Empathy-Eval: builds, checks, releases and explains a contrastive benchmark of emotional-support conversations.

The names below are the public interface; ``docs/python.md`` shows each. Each is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from empathy_eval.base.printed import register_tables
from empathy_eval.base.version import __version__

if TYPE_CHECKING:
    from empathy_eval.base.errors import EmpathyEvalError, InputError, JobError
    from empathy_eval.commands.agree import agree
    from empathy_eval.commands.annotate import annotate
    from empathy_eval.commands.build import build
    from empathy_eval.commands.compare import compare
    from empathy_eval.commands.describe import describe
    from empathy_eval.commands.diff import diff
    from empathy_eval.commands.explore import explore
    from empathy_eval.commands.init import init
    from empathy_eval.commands.ledger import ledger_export, ledger_import, ledger_merge, ledger_show
    from empathy_eval.commands.names import names
    from empathy_eval.commands.preview import preview
    from empathy_eval.commands.publish import publish
    from empathy_eval.commands.release import release
    from empathy_eval.commands.report import report
    from empathy_eval.commands.respond import respond
    from empathy_eval.commands.review import review_export, review_import
    from empathy_eval.commands.score import score
    from empathy_eval.commands.shortcuts import shortcuts
    from empathy_eval.commands.show import show, show_rejected
    from empathy_eval.commands.study import study
    from empathy_eval.commands.train import train
    from empathy_eval.commands.verify import verify
    from empathy_eval.completions.models.custom import TextModel
    from empathy_eval.completions.requests import Completion, Flaw, Model, NoAnswer
    from empathy_eval.design.recipe import Recipe, load_recipe
    from empathy_eval.evaluation.external.custom_means import CustomTextResults
    from empathy_eval.evaluation.inversion.results import ReleaseTables
    from empathy_eval.generation.checks.custom import Check
    from empathy_eval.metrics.protocol import MeanMetric, Metric
    from empathy_eval.raters.people.correlations import AgainstPeople
    from empathy_eval.raters.study.power import study_plan
    from empathy_eval.raters.systems.results import SystemComparison
    from empathy_eval.releases.hub.fetch import load

# The module of each name; the imports above repeat it for type checkers. Most verbs are in the module of their name.
_VERBS = (
    "agree", "annotate", "build", "compare", "describe", "diff", "explore", "init", "names", "preview", "publish", "release", "report",
    "respond", "score", "shortcuts", "show", "study", "train", "verify",
)  # fmt: skip
_PLACE = {name: f"commands.{name}" for name in _VERBS} | {
    name: place
    for place, names in {
        "base.errors": ("EmpathyEvalError", "InputError", "JobError"),
        "commands.ledger": ("ledger_export", "ledger_import", "ledger_merge", "ledger_show"),
        "commands.review": ("review_export", "review_import"),
        "commands.show": ("show_rejected",),
        "completions.models.custom": ("TextModel",),
        "completions.requests": ("Completion", "Flaw", "Model", "NoAnswer"),
        "design.recipe": ("Recipe", "load_recipe"),
        "evaluation.external.custom_means": ("CustomTextResults",),
        "evaluation.inversion.results": ("ReleaseTables",),
        "generation.checks.custom": ("Check",),
        "metrics.protocol": ("MeanMetric", "Metric"),
        "raters.people.correlations": ("AgainstPeople",),
        "raters.study.power": ("study_plan",),
        "raters.systems.results": ("SystemComparison",),
        "releases.hub.fetch": ("load",),
    }.items()
    for name in names
}
# (module, function) that makes the printed table of a result, by class name.
_TABLES = {
    "Ablation": ("train", "ablation_table"), "Described": ("describe", "description_table"),
    "AgainstPeople": ("score_tables", "human_correlation_table"), "Agreement": ("agree", "agreement_table"),
    "CustomTextResults": ("score_tables", "custom_text_table"), "StudyPlan": ("study", "plan_table"),
    "ReleaseTables": ("score_tables", "score_table"), "Report": ("release", "inversion_table"),
    "ShortcutAudit": ("shortcuts", "shortcut_table"), "StudyReport": ("study_tables", "study_table"),
    "SystemComparison": ("compare", "compared_table"), "TrainedModel": ("train", "model_table"),
}  # fmt: skip
register_tables({name: (f"empathy_eval.commands.{module}", table) for name, (module, table) in _TABLES.items()})
__all__ = [
    "__version__", "AgainstPeople", "Check", "Completion", "CustomTextResults", "EmpathyEvalError", "Flaw", "InputError", "JobError",
    "MeanMetric", "Metric", "Model", "NoAnswer", "Recipe", "ReleaseTables", "SystemComparison", "TextModel", "agree", "annotate", "build",
    "compare", "describe", "diff", "explore", "init", "ledger_export", "ledger_import", "ledger_merge", "ledger_show", "load",
    "load_recipe", "names", "preview", "publish", "release", "report", "respond", "review_export", "review_import", "score", "shortcuts",
    "show", "show_rejected", "study", "study_plan", "train", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACE:
        raise AttributeError(f"module 'empathy_eval' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"empathy_eval.{_PLACE[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
