"""``show``: provenance of a text, and refused texts."""

from __future__ import annotations

import itertools
import textwrap
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error, plain
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.stopping import run_beside_loops
from empathy_eval.commands.command import Command, Option, arguments_for, check_count, whole_number

if TYPE_CHECKING:
    from empathy_eval.releases.inspect.show import InspectionInputs
    from empathy_eval.releases.inspect.shown import CheckFigure, RefusedText, ShownItem, ShownRequest, ShownText

WIDTH = 120
# Defaults of --rejected: texts, and characters of a text.
MOST_SHOWN, MOST_CHARACTERS = 100, 4000
EXAMPLES = """\
examples:
  empathy-eval show build/demo 017-seed                   a dialogue: its requests, and the answers that were refused
  empathy-eval show build/demo 017-seed-t05 | less        a helper turn with its variants; 017-seed-t05/empathetic is one of them
  empathy-eval show build/demo/release 017-seed-t05 --ledger build/demo/ledger.sqlite
  empathy-eval show build/demo s1-0123abcd                the request whose key begins like this
  empathy-eval show build/demo --rejected edit_ratio_high
"""


@takes_paths
def show(
    where: str | Path, name: str, *, ledger: str | Path | None = None, reviews: str | Path | None = None,
    scenarios: str | Path | None = None, templates: str | Path | None = None, rules: str | Path | None = None,
) -> ShownItem:  # fmt: skip
    """Shows how a text was made: all that a release (a folder, or ``org/name@v1.0.0``), a build or annotations hold of it.

    ``name`` is a dialogue, a pair or a turn, a variant (``017-seed-t05/empathetic``), a crossed item (``017-seed-x1``), or the beginning of
    a request's key. Requests are rendered, and texts checked, with the definitions in the folder (``design``), or with the folders
    ``scenarios``, ``templates`` and ``rules``. Templates of a release and code that the folder names are not run; nothing is sent.

    Raises
    ------
    InputError
        If there is no such folder, or it has nothing of that name.
    JobError
        If a row of the ledger that is read is damaged.
    """
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.releases.inspect.show import show

    inputs = {"ledger": ledger, "reviews": reviews, "scenarios": scenarios, "templates": templates, "rules": rules}
    return run_beside_loops(lambda: show(release_folder(where), name, _inputs(**inputs)))


@takes_paths
def show_rejected(
    where: str | Path, reason: str | None = None, *, ledger: str | Path | None = None, scenarios: str | Path | None = None,
    templates: str | Path | None = None, rules: str | Path | None = None,
) -> list[RefusedText]:  # fmt: skip
    """Lists refused texts by reason (None: any), and what was left out; other parameters are as in :func:`show`.

    Raises
    ------
    InputError
        If there is no such folder, or nothing was refused for that reason.
    JobError
        If rows of the ledger are damaged.
    """
    inputs = {"ledger": ledger, "scenarios": scenarios, "templates": templates, "rules": rules}
    return run_beside_loops(lambda: list(_rejected(where, reason, **inputs)))


def _rejected(where: str | Path, reason: str | None = None, **inputs: str | Path | None) -> Iterator[RefusedText]:
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.releases.inspect.show import rejected

    return rejected(release_folder(where), reason, _inputs(**inputs))


def _inputs(**paths: str | Path | None) -> InspectionInputs:
    from empathy_eval.releases.inspect.show import InspectionInputs

    return InspectionInputs(**{name: Path(path) for name, path in paths.items() if path})


def _run(options: Namespace) -> int:
    if (options.name is None) == (options.reason is None):
        raise input_error("show", "takes either an ID or --rejected", "give exactly one of them")
    if options.reason is None:
        shown = show(**arguments_for(options, show))
        print(_json(shown.to_json()) if options.json else plain("\n".join(_lines(shown))))
        return 0
    if options.limit is not None:
        check_count("--limit", options.limit, 1)
    refused = _rejected(**arguments_for(options, show_rejected) | {"reason": options.reason or None})
    if options.json:
        print(_json([text.to_json() for text in itertools.islice(refused, options.limit)]))
        return 0
    count = 0
    for text in itertools.islice(refused, options.limit or MOST_SHOWN):
        count += 1
        print(plain("\n".join(_refused(text))))
    print(f"{count:,} shown" if count else "nothing was refused or left out")
    if left := 0 if options.limit else sum(1 for _ in refused):
        print(f"{left:,} more are not shown; --limit {count + left} or --json prints all, --rejected REASON only those of one reason")
    return 0


def _json(value: Any) -> str:
    # A text may hold lone surrogates, which only an escape makes valid JSON.
    return json_text(value).encode(errors="backslashreplace").decode()


def _lines(shown: ShownItem) -> Iterator[str]:
    """Yields all parts, in the order of a reader's questions."""
    yield f"{shown.name} in {shown.source}: {shown.status}"
    yield from (f"  {reason}" for reason in shown.why)
    yield from _section("context", [line for turn in shown.before for line in _turn(turn)])
    yield from _section("the text" if len(shown.texts) == 1 else "the texts", [line for text in shown.texts for line in _text(text)])
    yield from _section("texts that were not accepted", [line for text in shown.refused for line in _text(text)])
    yield from _section("requests", [line for request in shown.requests for line in _request(request)])
    for name, rows in shown.judgements.items():
        yield from _section(name, [line for row in rows for line in _row(row)])
    yield from _section("notes", [line for note in shown.notes for line in _wrapped(note, "")])


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"# {title}"
        yield from lines


def _wrapped(text: str, margin: str) -> Iterator[str]:
    for line in text.splitlines() or [""]:
        yield from textwrap.wrap(line, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False) or [""]


def _turn(turn: ShownText) -> Iterator[str]:
    yield from _wrapped(f"{turn.name}{f' ({turn.strategy})' if turn.strategy else ''}: {turn.text}", "")


def _text(text: ShownText) -> Iterator[str]:
    if not text.origin:
        yield from _turn(text)
        return
    details = [value for value in (text.strategy and f"strategy {text.strategy}", text.way) if value]
    yield text.name + (f" ({', '.join(details)})" if details else "")
    yield from _wrapped(text.text, "    ")
    yield from _wrapped(text.origin + (f": {', '.join(text.reasons)}" if text.reasons else ""), "  ")
    if text.request_key:
        yield f"  key {text.request_key}"
    yield from _figures(text.figures)


def _figures(figures: tuple[CheckFigure, ...]) -> Iterator[str]:
    for figure in figures:
        yield from _wrapped(f"{'passes' if figure.holds else 'FAILS '} {figure.name}: {figure.value} ({figure.bound})", "  ")


def _request(request: ShownRequest) -> Iterator[str]:
    place = "" if request.turn is None else f" turn {request.turn}"
    sample = "" if request.sample is None else f", sample {request.sample}" + (", a repair" if request.repair else "")
    yield f"--- {request.kind}{place}{sample}: {request.verdict}"
    yield f"  key {request.key}" + (f" · endpoint {request.endpoint}" if request.endpoint else "")
    yield from _wrapped(request.note, "  ") if request.note else ()
    for name, detail in request.reasons:
        yield from _wrapped(f"{name}: {detail}" if detail else name, "  ")
    if request.body is not None and str(request.body.get("model")).startswith("seed-bank@"):
        yield "  answered from the scenario file: no model read the request; --json shows it in full"
    elif request.body is not None:
        yield "  sent"
        yield from _body(request.body)
    if request.text is not None:
        tokens = f"{request.tokens.get('input_tokens', 0):,} + {request.tokens.get('output_tokens', 0):,} tokens"
        yield f"  answered by {request.model}, finish {request.finish}, {tokens}"
        yield from _wrapped(request.text, "    ")
    yield from _figures(request.figures)


def _body(body: Mapping[str, Any]) -> Iterator[str]:
    messages = body.get("messages")
    readable = isinstance(messages, list) and all(isinstance(row, dict) and isinstance(row.get("content"), str) for row in messages)
    rest = {name: value for name, value in body.items() if name != "messages" or not readable}
    yield from _wrapped(json_text(rest, indent=None), "    ")
    for message in messages if readable and isinstance(messages, list) else ():
        yield f"    [{message.get('role')}]"
        yield from _wrapped(message["content"], "    ")


def _row(row: Mapping[str, Any]) -> Iterator[str]:
    values = ", ".join(f"{name} {value}" for name, value in row.items() if value is not None and name not in ("pair_id", "dialogue_id"))
    yield from _wrapped(values, "  ")


def _refused(refused: RefusedText) -> Iterator[str]:
    place = f" {refused.kind}" if refused.kind else ""
    yield f"--- {refused.dialogue_id}{place}{'' if refused.turn is None else f' turn {refused.turn}'}: {', '.join(refused.reasons)}"
    yield from (f"  key {refused.request_key}",) if refused.request_key else ()
    yield from _wrapped(refused.detail, "  ") if refused.detail else ()
    if refused.text is not None:
        yield from _wrapped(refused.text[:MOST_CHARACTERS], "    ")
    if (more := len(refused.text or "") - MOST_CHARACTERS) > 0:
        yield f"  {more:,} more characters are left out; --json prints them all"


COMMAND = Command(
    show,
    "show how a text was made: requests, answers, checks, and what was refused",
    "Shows a text of a release, a build or annotations: the request as it was sent, every answer with its finish reason, the checks with "
    "their figures, repairs, scores and judgements. Sends nothing, and runs no code that the folder names.",
    {
        "WHERE": Option("a build folder, a release (a folder, or org/name@v1.0.0), or an annotation folder", type=str),
        "name=ID": Option("a dialogue, a pair, a turn, a variant, a crossed item, or the beginning of a request's key", nargs="?"),
        "--ledger PATH": "the ledger with the answers (default: the build's own)",
        "reason=--rejected REASON": Option(
            "list what was refused, for this reason or for any reason, and what was left out",
            nargs="?", const="",
        ),
        "--limit N": Option("with --rejected: list at most N (default: 100, and a count of the rest)", type=whole_number),
        "--reviews FILE": "a record of review import: also show the judgements of raters",
        "--scenarios DIR": "a folder of scenarios of your own (default: those in WHERE)",
        "--templates DIR": "a folder of prompt templates of your own (default: those of the build)",
        "--rules DIR": "a folder of rules of your own (default: those in WHERE)",
        "--json": "print everything as JSON",
    },
    EXAMPLES,
    run=_run,
)  # fmt: skip
