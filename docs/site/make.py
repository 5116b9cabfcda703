"""Builds the documentation site: stages the documents, writes the reference from the code, makes the gallery, and runs Sphinx."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import empathy_eval
import yaml
from empathy_eval.base.json_text import json_name
from empathy_eval.cli import VERBS, make_parser

HERE = Path(__file__).resolve().parent
DOCS, ROOT = HERE.parent, HERE.parent.parent
# Documents that lie elsewhere, by their names on the site.
OTHERS = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
# JSON that programs read, by its schema: what it is.
JSON = {
    "release/manifest": "`manifest.json` of a release",
    "release/tables": "`report/tables.json`, and what `score --json` prints",
    "build/outcome": "a line of `outcomes.jsonl` of a build",
    "build/ledger_export_row": "a line of `ledger export`",
}
ERRORS = """\
# Errors

Every error says where something is wrong, what is wrong with the value quoted, and how to fix it. All problems of a file are reported
at once.

| exit status | Python | meaning |
| --- | --- | --- |
| 0 | | The job is done. |
| 1 | `JobError` | The job did not finish. Answers that were paid for are kept: run the same command again. |
| 2 | `InputError` | The input is wrong, such as an option, a path or a file, and nothing was done. |

```{eval-rst}
.. autoexception:: empathy_eval.EmpathyEvalError
   :members:
.. autoexception:: empathy_eval.InputError
.. autoexception:: empathy_eval.JobError
```
"""


def stage(source: Path) -> None:
    """Copies all documents into one folder; links that leave the documents become plain text."""
    pages = {path.name: path for path in (*DOCS.glob("*.md"), *HERE.glob("*.md"))}
    pages |= {name: ROOT / path for name, path in OTHERS.items()}
    for name, path in pages.items():
        (source / name).write_text("".join(_linked(path.read_text(encoding="utf-8"), set(pages))), encoding="utf-8")
    shutil.copytree(DOCS / "figures", source / "figures")
    shutil.copy(HERE / "conf.py", source)


def _linked(text: str, pages: set[str]) -> Iterator[str]:
    """The text of a document; code is left as it is."""
    for part in re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL):
        if not part.startswith("```"):
            part = re.sub(r"\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)", lambda link: _link(link, pages), part)
            part = re.sub(r'<a id="([^"]+)"></a>([^|]+?)(?= \|)', r"[\2]{#\1}", part)
        yield part


def _link(link: re.Match[str], pages: set[str]) -> str:
    target, _, anchor = link[2].partition("#")
    name = {"../README.md": "index.md", **{f"../{path}": page for page, path in OTHERS.items()}}.get(target, target.removeprefix("docs/"))
    if name in pages or name.startswith(("reference/", "figures/", "gallery")):
        return f"[{link[1]}]({name}{'#' * bool(anchor)}{anchor})"
    return link[1]


def reference(folder: Path) -> None:
    """The reference: the command line, the Python API, columns, JSON and errors, from the code and its data."""
    folder.mkdir()
    (folder / "cli.md").write_text("".join(_cli()), encoding="utf-8")
    (folder / "python.md").write_text("".join(_python()), encoding="utf-8")
    (folder / "columns.md").write_text("".join(_columns()), encoding="utf-8")
    (folder / "json.md").write_text("".join(_json()), encoding="utf-8")
    (folder / "errors.md").write_text(ERRORS, encoding="utf-8")


def _cli() -> Iterator[str]:
    yield "# Command line\n\nThis is what `--help` prints.\n\n"
    yield from _verbs(make_parser(), 2)


def _verbs(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    for part in (action for action in parser._actions if isinstance(action, argparse._SubParsersAction)):
        for verb in part.choices.values():
            yield f"{'#' * level} {verb.prog.removeprefix('empathy-eval ')}\n\n```text\n{verb.format_help()}```\n\n"
            yield from _verbs(verb, level + 1)


def _python() -> Iterator[str]:
    yield "# Python\n\n`import empathy_eval as ee`. [python.md](../python.md) shows the calls in an order that runs.\n\n"
    named = {name: getattr(empathy_eval, name) for name in empathy_eval.__all__ if not name.startswith("_")}
    for title, kind in (("Calls", "autofunction"), ("Classes", "autoclass")):
        names = [name for name, value in named.items() if isinstance(value, type) == (kind == "autoclass")]
        members = "\n   :members:\n   :inherited-members: object" if kind == "autoclass" else ""
        shown = [name for name in names if not issubclass(named[name], Exception)] if kind == "autoclass" else names
        yield f"## {title}\n\n" + "".join(
            f"### {name}\n\n```{{eval-rst}}\n.. {kind}:: empathy_eval.{name}{members}\n```\n\n" for name in shown
        )


def _columns() -> Iterator[str]:
    from empathy_eval.design.dataset import COLUMNS, OPTIONAL

    told: dict[str, str] = yaml.safe_load((ROOT / "release" / "columns.yaml").read_text(encoding="utf-8"))
    yield "# Columns\n\nEach config of a release is loaded with `datasets.load_dataset(RELEASE, CONFIG)`.\n\n"
    for config, columns in {**COLUMNS, **OPTIONAL}.items():
        yield f"## {config}\n\n| column | what it holds |\n| --- | --- |\n"
        yield from (f"| `{name}` | {told.get(name, '')} |\n" for name in columns.names)
        yield "\n"


def _json() -> Iterator[str]:
    yield "# JSON\n\nThe keys of what the program writes for other programs. Their schemas are in `schemas/`.\n\n"
    for name, what in JSON.items():
        schema = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
        yield f"## {name.rpartition('/')[2]}\n\n{what[0].upper() + what[1:]}.\n\n"
        for title, part in ((None, schema), *schema.get("$defs", {}).items()):
            if part.get("properties"):
                yield (f"### {name.rpartition('/')[2]}: {title}\n\n" if title else "") + "| key | meaning |\n| --- | --- |\n"
                yield from (f"| `{key}` | {_meaning(value)} |\n" for key, value in part["properties"].items())
                yield "\n"
    yield from _results()


def _results() -> Iterator[str]:
    """The keys of what `--json` prints, by verb: the fields of the results, and of the records in them."""
    groups = [(getattr(module.COMMAND, "commands", (module.COMMAND,)), module.COMMAND.name) for module in VERBS]
    verbs = [(verb, f"{group} " * (len(some) > 1) + (verb.name or verb.call.__name__)) for some, group in groups for verb in some]
    types = {kind.__name__: kind for kind in _dataclasses()}
    written = set[type]()
    yield "## Results of the calls\n\nWhat `--json` prints is what `to_json()` of the result gives: these keys, and `provenance`.\n\n"
    for verb, title in verbs:
        pending = [kind for kind in _named(str(inspect.signature(verb.call).return_annotation), types) if kind not in written]
        if any("json" in row for row in verb.rows) and pending:
            yield f"### `{title} --json`\n\n"
        while pending:
            written.add(kind := pending.pop(0))
            yield f"`{kind.__name__}`: {_meaning({'description': (inspect.getdoc(kind) or '').partition(chr(10) * 2)[0]})}\n\n"
            yield "| key | type |\n| --- | --- |\n"
            for field in fields(kind):
                if field.metadata.get("json") != "hidden" and not field.name.startswith("_"):
                    yield f"| `{json_name(field)}` | {str(field.type).replace('|', 'or')} |\n"
                    inner = _named(str(field.type), {**types, **vars(sys.modules[kind.__module__])})
                    pending += [part for part in inner if part not in written and part not in pending]
            yield "\n"


def _named(annotation: str, names: dict[str, Any]) -> list[type]:
    """The dataclasses that an annotation names."""
    kinds = (names.get(name) for name in re.findall(r"\w+", annotation))
    return [kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)]


def _dataclasses() -> Iterator[type]:
    """All dataclasses of the package."""
    for module in walk_packages(empathy_eval.__path__, "empathy_eval."):
        if "__main__" not in module.name and ".data" not in module.name:
            yield from (kind for kind in vars(import_module(module.name)).values() if isinstance(kind, type) and is_dataclass(kind))


def _meaning(part: dict[str, Any]) -> str:
    text = part.get("description", "") or part.get("$ref", "").rpartition("/")[2]
    return re.sub(r"([|<>*_])", r"\\\1", text).replace("\n", " ")


def gallery(folder: Path) -> None:
    """Living pages: reports and explorers of the demo and the pilot, a review page, and the pages of agreement and of a study."""
    work = folder.parent / "work"
    fast = ["--without", "bertscore", "--without", "embedding"]
    for name, version in (("demo", "0.1.0"), ("pilot", "1.0.0")):
        _run("build", name, "--out", work / name, *(["--offline"] if name == "pilot" else []))
        judged = _annotated(work) if name == "pilot" else []
        _run("release", work / name, "--out", folder / name, "--version", version, *judged, *fast)
    _run(
        "review",
        "export",
        folder / "demo",
        "--out",
        work / "review",
        "--pairs",
        "12",
        "--dialogues",
        "2",
        "--raters",
        "6",
        "--per-item",
        "2",
    )
    page = next(iter(sorted((work / "review").rglob("*.html"))))
    shutil.copy(page, folder / "review.html")
    _run("agree", DOCS / "agreement.csv", "--judge", "judge-a", "--page", folder / "agreement.html")
    _run("study", DOCS / "study.csv", "--baseline", "human", "--labels", "Bad,Okay,Good", "--raters", DOCS / "study_raters.csv",
         "--page", folder / "study.html")  # fmt: skip
    shutil.rmtree(work)


def _annotated(work: Path) -> list[str | Path]:
    """The options of the pilot's release for the annotations of its first judge."""
    ledger, out = ROOT / "release" / "pilot-teacher.jsonl.gz", work / "teacher"
    _run("annotate", work / "pilot", "--rubric", "teacher", "--model", "large-language-model-judge", "--turns", "30", "--ledger", ledger,
         "--offline", "--out", out)  # fmt: skip
    return ["--annotations", out]


def _run(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "empathy_eval", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def main() -> None:
    """Builds the site into the folder ``--out``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="the folder of the site (default: build/site)")
    parser.add_argument("--no-gallery", action="store_true", help="leave the living pages out")
    options = parser.parse_args()
    # Help texts are as wide as in a terminal of this width.
    os.environ["COLUMNS"] = "100"
    source = options.out / "source"
    shutil.rmtree(options.out, ignore_errors=True)
    (source / "extra" / "gallery").mkdir(parents=True)
    stage(source)
    reference(source / "reference")
    if not options.no_gallery:
        gallery(source / "extra" / "gallery")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", str(source), str(options.out / "html")]
    status = subprocess.run(command, check=False).returncode  # noqa: S603
    sys.stdout.write(f"site: {options.out / 'html' / 'index.html'}\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
