"""The public face: names that are loaded when they are used, and that no module hides."""

import importlib
import inspect
import subprocess
import sys

import empathy_eval

from tests.test_rooms import MODULES

VERBS = (
    "agree", "annotate", "build", "compare", "describe", "diff", "explore", "init", "ledger_import", "ledger_merge", "ledger_show", "load",
    "load_recipe", "names", "preview", "publish", "release", "report", "respond", "review_export", "review_import", "score", "shortcuts",
    "show", "show_rejected", "study", "study_plan", "train", "verify",
)  # fmt: skip


def test_every_verb_is_callable_once_every_module_is_imported() -> None:
    for module in MODULES:
        if module != "__main__":
            importlib.import_module(f"empathy_eval.{module}")
    for name in empathy_eval.__all__:
        assert getattr(empathy_eval, name) is not None
    for verb in VERBS:
        assert inspect.isfunction(getattr(empathy_eval, verb)) and inspect.getdoc(getattr(empathy_eval, verb)), verb


def test_the_names_of_the_face_are_those_that_types_see_and_nothing_else_is_there() -> None:
    assert set(VERBS) <= set(empathy_eval.__all__) == {"__version__", *empathy_eval._PLACE} and set(empathy_eval.__all__) <= set(
        dir(empathy_eval)
    )
    assert not hasattr(empathy_eval, "not_a_verb")


def test_the_package_loads_no_library_and_a_name_loads_what_it_needs() -> None:
    code = (
        "import sys, empathy_eval as ee\n"
        "assert not {'numpy', 'yaml', 'argparse', 'jsonschema', 'spacy', 'pyarrow'} & set(sys.modules)\n"
        "ee.load_recipe\n"
        "assert 'yaml' in sys.modules and not {'numpy', 'spacy', 'pyarrow', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
