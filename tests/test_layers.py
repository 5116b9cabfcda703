"""The layers of the package: each module imports only from layers above its own."""

import ast
from pathlib import Path

import builder

LAYERS = (
    {"errors", "text", "signature", "files", "parsing", "schemas", "sandbox", "templates", "delimited", "stopping"},
    {"records", "taxonomy", "phases", "scenarios", "prompts", "config", "patterns"},
    {"stored", "opening", "ledger", "merging", "budget", "spending", "models", "outstanding", "answers", "answer_text", "asking"},
    {"planning", "generation", "rules", "rewriting", "checks", "splitting"},
    {"metrics", "clusters", "contrasts", "ranking", "inversion", "agreement"},
    {
        "summary",
        "estimating",
        "pipeline",
        "rows",
        "corpus",
        "given",
        "measuring",
        "figures",
        "reporting",
        "standing",
        "reviews",
        "handing",
        "batching",
        "describing",
        "charts",
        "page",
        "tables",
        "cluster",
        "keeping",
        "engine",
        "cards",
        "releasing",
        "rechecking",
        "verifying",
        "comparing",
        "publishing",
        "reviewing",
    },
    {"commands", "cli", "__main__"},
)
PACKAGE = Path(builder.__file__).parent
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if "data" not in path.relative_to(PACKAGE).parts)


def _module(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("builder"):
            parts = (node.module or "").split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("builder.")}
    return found - {"__version__"}


RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}


def test_every_module_has_a_layer() -> None:
    assert {_module(path) for path in SOURCES} - {"__init__"} == set(RANK)


def test_imports_go_in_one_direction_only() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path in SOURCES
        if path.name != "__init__.py" or path.parent != PACKAGE
        for other in _imported(path)
        if RANK[other] > RANK[_module(path)]
    ]
    assert not wrong


def test_no_two_modules_import_each_other() -> None:
    graph = {module: set[str]() for module in RANK}
    for path in SOURCES:
        if _module(path) in graph:
            graph[_module(path)] |= _imported(path) - {_module(path)}
    while leaves := [module for module, others in graph.items() if not others & graph.keys()]:
        for module in leaves:
            del graph[module]
    assert not graph


def test_measures_never_import_models() -> None:
    measures = [path for path in SOURCES if _module(path) in {"metrics", "clusters", "contrasts", "ranking", "inversion", "agreement"}]
    assert measures
    assert not [path for path in measures if "models" in _imported(path)]


def test_modules_and_functions_are_short() -> None:
    for path in SOURCES:
        source = path.read_text()
        assert source.count("\n") <= 250, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 40, f"{path}: {node.name}"
