"""Sandboxed Jinja templates: an unknown variable is an error, and a template only reads its variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, reduce, wraps
from pathlib import Path
from traceback import walk_tb
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.runtime import BlockReference, Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner
from jinja2.visitor import NodeTransformer

from empathy_eval.base.errors import EmpathyEvalError, InputError, input_error, shortened

# The most characters of a value, and of a whole output: the page of a rater holds a whole sheet.
MOST = 50_000_000
# A width, an indent, an exponent.
WIDEST = 200
METHODS: dict[type, set[str]] = {
    str: {"capitalize", "casefold", "count", "endswith", "find", "index", "isalpha", "isdigit", "islower", "isspace", "isupper", "lower",
          "lstrip", "partition", "removeprefix", "removesuffix", "rfind", "rpartition", "rsplit", "rstrip", "split", "splitlines",
          "startswith", "strip", "title", "upper"},
    dict: {"get", "items", "keys", "values"},
    list: {"count", "index"},
    tuple: {"count", "index"},
    LoopContext: {"changed", "cycle"},
    Cycler: {"next", "reset"},
}  # fmt: skip
OURS = (Macro, BlockReference, LoopContext, Cycler, Joiner, jinja2.Undefined)
LEFT_OUT = ("center", "filesizeformat", "pprint", "random", "urlize", "wordwrap", "xmlattr")
WIDTHS = ("batch", "indent", "round", "slice", "tojson")
WIDE = re.compile(r"%[^a-zA-Z%]*(?:\*|[0-9]{4})|\{[^{}]*:[^{}]*(?:[0-9]{4}|\{)")
FIX = "fix the template: it may read its variables, within bounds, and call plain methods of texts, lists and mappings"
# Names that are told where one is not known.
SHOWN = 30


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment in which templates read data, call plain methods and their own macros, within memory bounds."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        kept = {name: function for name, function in self.filters.items() if name not in LEFT_OUT}
        self.filters = {name: _guarded(function, name in WIDTHS) for name, function in kept.items()}
        self.filters |= {"replace": _replaced, "join": _joined(kept["join"]), "format": _formatted, "keyed": keyed}
        del self.globals["lipsum"]

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = ConcatToAdd().visit(super()._parse(source, name, filename))
        return parsed

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Jinja's attribute access, with a fast path for plain texts, which prompts read by the thousand."""
        value = getattr(obj, attribute, None)
        return value if type(value) is str and not attribute.startswith("_") else super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Allows data and the methods above."""
        known = not callable(value) or isinstance(value, OURS) or any(isinstance(obj, kind) and attr in METHODS[kind] for kind in METHODS)
        return known and super().is_safe_attribute(obj, attr, value)

    def is_safe_callable(self, obj: Any) -> bool:
        """Allows the methods above, macros of templates, and Jinja's own functions."""
        of = getattr(obj, "__self__", None)
        method = isinstance(of, tuple(METHODS)) or getattr(obj, "is_a_format", False)
        plain = method or any(obj is function for function in self.globals.values())
        return (plain or isinstance(obj, OURS)) and super().is_safe_callable(obj)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """``str.format`` without widths that fill memory."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def narrow(*values: Any, **named: Any) -> str:
            _no_wide_format(value.__self__, values, named)
            return wrapped(*values, **named)

        narrow.is_a_format = True  # type: ignore[attr-defined]
        return narrow

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Refuses results that are too large before they are computed."""
        match operator:
            case "*":
                _no_large_product(left, right)
            case "+":
                check_size(size_of(left) + size_of(right))
            case "**" if abs(left) > MOST or abs(right) > WIDEST:
                raise OverflowError(f"{left} ** {right} is too large")
            case "%" if isinstance(left, str):
                _no_wide_format(left, right)
        return super().call_binop(context, operator, left, right)


class ConcatToAdd(NodeTransformer):
    """Rewrites ``a ~ b`` as a sum of texts, so that the bound of sums holds for it."""

    def visit_Concat(self, node: nodes.Concat, *args: Any, **kwargs: Any) -> nodes.Node:  # noqa: N802 (Jinja's name)
        """The sum."""
        self.generic_visit(node, *args, **kwargs)
        texts: list[nodes.Expr] = [nodes.Filter(operand, "string", [], [], None, None, lineno=node.lineno) for operand in node.nodes]
        return reduce(lambda total, operand: nodes.Add(total, operand, lineno=node.lineno), texts)


def check_size(size: int) -> None:
    """Raises OverflowError above the bound."""
    if size > MOST:
        raise OverflowError(f"it would make more than {MOST:,} characters")


def size_of(value: Any) -> int:
    """About how many characters a value has when written.

    Raises:
        OverflowError: as soon as it exceeds the bound, however often one list occurs in another.
    """
    # What stands in many places is counted once: by identity, and all of it is held by the value.
    size, known, left = 0, dict[int, int](), [(0, 0, iter((value,)))]
    while left:
        whole, before, parts = left[-1]
        for part in parts:
            size += len(part) if isinstance(part, str) else known.get(id(part), 1)
            check_size(size)
            if isinstance(part, list | tuple | dict | set | frozenset) and id(part) not in known:
                left.append((id(part), size - 1, iter([*part.keys(), *part.values()] if isinstance(part, dict) else part)))
                break
        else:
            left.pop()
            known[whole] = size - before
    return size


@jinja2.pass_context
def bounded(context: Context, value: Any) -> Any:
    """A value, checked before it is written."""
    if type(value) is str:
        check_size(len(value))
    else:
        size_of(value)
    return value


@jinja2.pass_environment
def keyed(environment: jinja2.Environment, rows: Iterable[Any], name: str, value: str | None = None) -> dict[Any, Any]:
    """Rows, or one attribute of them, by another attribute."""
    key, of = make_attrgetter(environment, name), make_attrgetter(environment, value)
    return {key(row): of(row) if value else row for row in rows}


def _no_large_product(left: Any, right: Any) -> None:
    for value, times in ((left, right), (right, left)):
        if isinstance(times, int) and isinstance(value, str | list | tuple):
            check_size(max(size_of(value), 1) * times)
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 4096:
        raise OverflowError("a product of numbers is too large")


def _no_wide_format(text: str, *values: Any) -> None:
    if WIDE.search(text):
        raise OverflowError(f'a width in "{text[:40]}" is too large')
    size_of([text, *values])


def _guarded(function: Callable[..., Any], narrow: bool) -> Callable[..., Any]:
    """A filter that refuses large inputs; with ``narrow`` its numbers are widths."""

    @wraps(function)  # what Jinja passes to the one it passes to the other
    def guarded(*values: Any, **named: Any) -> Any:
        size_of([*values, *named.values()])
        if narrow and any(isinstance(value, int) and abs(value) > WIDEST for value in (*values[1:], *named.values())):
            raise OverflowError(f"a width above {WIDEST} is too large")
        return function(*values, **named)

    return guarded


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def joined(first: Any, value: Any, d: str = "", attribute: Any = None) -> Any:
        values = list(value)
        check_size(size_of(values) + len(values) * len(str(d)))
        return function(first, values, d, attribute)

    return joined


@jinja2.pass_eval_context
def _replaced(context: nodes.EvalContext, value: Any, old: str, new: str, count: int | None = None) -> Any:
    text = str(value)
    check_size(len(text) + text.count(str(old)) * len(str(new)))
    return jinja2.filters.do_replace(context, value, old, new, count)


def _formatted(value: str, *values: Any, **named: Any) -> str:
    _no_wide_format(str(value), values, named)
    return jinja2.filters.do_format(value, *values, **named)


class MissingName(jinja2.StrictUndefined):
    """An unknown name; the error lists the known ones."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        of = self._undefined_obj
        known = list(of) if isinstance(of, dict) else getattr(of, "__dataclass_fields__", ())
        names = ", ".join(sorted(map(str, known))[:SHOWN])
        return f'"{self._undefined_name}" is not known; use one of {names}' if names else super()._undefined_message


class FolderLoader(jinja2.FileSystemLoader):
    """Loads templates of one folder; links that lead out of it are not followed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder = folder.resolve()

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """The source of a template in the folder."""
        if not (self._folder / template).resolve().is_relative_to(self._folder):
            raise jinja2.TemplateNotFound(template, f'"{template}" lies outside the folder')
        return super().get_source(environment, template)


@cache
def environment(folder: Path | None) -> jinja2.Environment:
    """A sandbox over a folder (None: single templates), which caches compiled files until they change.

    Only ``*.html.j2`` is escaped: prompts and cards are plain text.
    """
    return Sandbox(
        loader=FolderLoader(folder) if folder else None,
        undefined=MissingName,
        autoescape=jinja2.select_autoescape(["html.j2"], default_for_string=False, default=False),
        trim_blocks=True,
        lstrip_blocks=True,
        # What could be reckoned while compiling is left to rendering, where the bounds are.
        optimized=False,
        finalize=bounded,
    )


def rendered(where: object, pieces: Callable[[], Iterable[str]]) -> str:
    """The output of a template.

    Raises:
        InputError: naming the template, for whatever the sandbox refuses or the template does wrong.
    """
    written: list[str] = []
    size = 0
    try:
        for piece in pieces():
            size += len(piece)
            check_size(size)
            written.append(piece)
    except EmpathyEvalError:
        raise
    except Exception as error:  # a stranger's template may fail in any way
        raise template_error(where, error) from error
    text = "".join(written)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise template_error(where, ValueError(f"it writes half of a surrogate pair ({text[error.start]!a})")) from error
    return text


def template_error(where: object, error: Exception) -> InputError:
    """The error for a template that was stopped or failed."""
    reason = " ".join(str(error).split()) or type(error).__name__
    what = "is stopped" if isinstance(error, SecurityError | OverflowError | jinja2.TemplateNotFound) else "cannot be rendered"
    return input_error(f"{where}{_line(where, error)}", f"{what}: {shortened(reason, 200)}", FIX)


def _line(where: object, error: BaseException) -> str:
    """The line of the template that failed, with its name if it is another one; empty if unknown."""
    lines = [
        f"{f': {template.name}' if template.name not in (None, where) else ''}: line {template.get_corresponding_lineno(line)}"
        for frame, line in walk_tb(error.__traceback__)
        if isinstance(template := frame.f_globals.get("__jinja_template__"), jinja2.Template)
    ]
    return lines[-1] if lines else ""
