"""What an import costs, and what it does to the process that imports: a library is light, and changes nothing that is not its own."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import empathy_eval

ROOT = Path(__file__).parent.parent.parent
LIBRARIES = [
    "aiohttp",
    "datasets",
    "huggingface_hub",
    "jinja2",
    "joblib",
    "jsonschema",
    "jsonschema_rs",
    "matplotlib",
    "nltk",
    "numpy",
    "openai",
    "openpyxl",
    "pandas",
    "pyarrow",
    "rapidfuzz",
    "ray",
    "referencing",
    "sacrebleu",
    "scipy",
    "sklearn",
    "spacy",
    "torch",
    "tqdm",
    "transformers",
    "yaml",
]
# What a build has no use for; spaCy's thinc would bring torch, scikit-learn pandas, and pandas pyarrow.
NOT_OF_A_BUILD = ["datasets", "huggingface_hub", "matplotlib", "nltk", "pandas", "pyarrow", "ray", "sacrebleu", "torch", "transformers"]
MODULES = [one.name for one in pkgutil.walk_packages(empathy_eval.__path__, "empathy_eval.") if not one.name.endswith("__main__")]

LOADED = """
import contextlib, io, json, sys
from empathy_eval.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""

CHANGED = """
import gc, importlib, json, logging, os, signal, sys, threading, warnings
import matplotlib

def state():
    root = logging.getLogger()
    return {
        "matplotlib": {name: repr(value) for name, value in dict.items(matplotlib.rcParams)},
        "path": list(sys.path),
        "finders": list(map(repr, sys.meta_path)),
        "frozen": gc.get_freeze_count(),
        "collector": [gc.isenabled(), gc.get_threshold()],
        "signals": {number: repr(signal.getsignal(number)) for number in signal.valid_signals()},
        "logging": [root.level, list(map(repr, root.handlers)), logging.root.manager.disable],
        "warnings": list(map(repr, warnings.filters)),
        "environment": dict(os.environ),
        "hooks": [repr(sys.excepthook), repr(threading.excepthook), sys.getrecursionlimit(), sys.getswitchinterval()],
        "folder": os.getcwd(),
        "threads": threading.active_count(),
    }

ours, theirs = json.loads(sys.argv[1])
for name in theirs:
    importlib.import_module(name)
before = state()
for name in ours:
    importlib.import_module(name)
after = state()
print(json.dumps({name: [before[name], after[name]] for name in before if before[name] != after[name]}))
"""


def said_by(script: str, *arguments: str) -> list[str] | dict[str, object]:
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said: list[str] | dict[str, object] = json.loads(done.stdout)
    return said


def test_help_loads_no_library() -> None:
    for arguments in (["--help"], ["build", "--help"], ["report", "--help"], ["review", "export", "--help"]):
        assert not set(LIBRARIES) & set(said_by(LOADED, *arguments)), arguments


def test_a_build_loads_nothing_that_it_does_not_use(world: Path, tmp_path: Path) -> None:
    demo = str(ROOT / "release" / "demo.yaml")
    loaded = set(said_by(LOADED, "build", demo, "--scenarios", str(world), "--out", str(tmp_path / "b")))
    assert (tmp_path / "b" / "build.json").is_file()
    assert {"spacy", "sklearn"} <= loaded and not set(NOT_OF_A_BUILD) & loaded


def test_importing_every_module_changes_nothing_in_the_process() -> None:
    """What the libraries themselves do when they are imported is theirs: they are there before."""
    theirs = [
        "aiohttp.web",
        "huggingface_hub",
        "jinja2",
        "joblib",
        "jsonschema",
        "nltk",
        "openai",
        "pyarrow.parquet",
        "sacrebleu",
        "matplotlib.figure",
    ]
    assert said_by(CHANGED, json.dumps([MODULES, theirs])) == {}
