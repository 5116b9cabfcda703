"""The rooms of the package: each imports only from rooms before it, no two modules import each other, and everything is short."""

import ast
from pathlib import Path

import empathy_eval

ROOMS = (
    "base", "statistics", "design", "completions", "generation", "metrics", "evaluation", "raters", "training", "reports", "releases",
    "commands", "cli", "__init__", "__main__",
)  # fmt: skip
# The left tower asks models, the right one never does; they meet only above.
NEVER = {"metrics": {"completions", "generation"}, "evaluation": {"completions", "generation"}}
# A module of fewer lines is worth its own file only where several modules import it.
SHORT = 60
LOOSE = {"__init__.py", "__main__.py", "cli.py"}
PACKAGE = Path(empathy_eval.__file__).parent
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if "data" not in path.relative_to(PACKAGE).parts)


def _module(path: Path) -> str:
    """The dotted name of a file in the package, ``base.errors``; a folder's own file is called as the folder."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {_module(path): path for path in SOURCES}


def _imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "empathy_eval":
            base = (node.module or "").removeprefix("empathy_eval").removeprefix(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".removeprefix(".")
                found.add(full if full in MODULES else base or "__init__")
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("empathy_eval.") for alias in node.names if alias.name.startswith("empathy_eval.")}
    return found - {_module(path)}


GRAPH = {module: _imported(path) for module, path in MODULES.items()}


def _room(module: str) -> str:
    return module.split(".")[0]


def test_there_are_twelve_rooms_and_three_loose_files() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__", "data"} == set(ROOMS[:12])
    assert {path.name for path in PACKAGE.glob("*.py")} == LOOSE


def test_rooms_import_only_from_the_rooms_before_them() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, others in GRAPH.items()
        for other in sorted(others - {"__init__"})
        if ROOMS.index(_room(other)) > ROOMS.index(_room(module)) or _room(other) in NEVER.get(_room(module), set())
    ]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module: set(others) for module, others in GRAPH.items()}
    while leaves := [module for module, others in graph.items() if not others & graph.keys()]:
        for module in leaves:
            del graph[module]
    assert not graph


def test_a_short_module_has_several_importers() -> None:
    """What one module alone needs stands in it; a verb's module has two: the command line, and the face of the package."""
    importers = {module: [other for other, found in GRAPH.items() if module in found] for module in MODULES}
    alone = [
        f"{module} is short, and {' '.join(importers[module]) or 'nobody'} alone imports it"
        for module, path in MODULES.items()
        if len(importers[module]) < 2 and path.name not in LOOSE and path.read_text().count("\n") < SHORT
    ]
    assert not alone, "\n".join(alone)


def test_modules_and_functions_are_short() -> None:
    for path in SOURCES:
        source = path.read_text()
        assert source.count("\n") <= 400, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 40, f"{path}: {node.name}"
