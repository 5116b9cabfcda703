"""Jinja templates: an unknown variable is an error, never an empty text, and a template only reads what it is given."""

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

# Signs of one value, and of all that a template writes: the page of a rater holds a whole sheet.
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


class Sandbox(ImmutableSandboxedEnvironment):
    """Lets a template read data, call plain methods of plain things and its own macros, and make what memory can hold."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        kept = {name: one for name, one in self.filters.items() if name not in LEFT_OUT}
        self.filters = {name: _guarded(one, name in WIDTHS) for name, one in kept.items()}
        self.filters |= {"replace": _replaced, "join": _joined(kept["join"]), "format": _formatted, "keyed": keyed}
        del self.globals["lipsum"]

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = Sums().visit(super()._parse(source, name, filename))
        return parsed

    def getattr(self, obj: Any, attribute: str) -> Any:
        """What Jinja gives; a plain text, which opens no door and which prompts read by the thousand, at once."""
        value = getattr(obj, attribute, None)
        return value if type(value) is str and not attribute.startswith("_") else super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Data, and the methods above."""
        known = not callable(value) or isinstance(value, OURS) or any(isinstance(obj, one) and attr in METHODS[one] for one in METHODS)
        return known and super().is_safe_attribute(obj, attr, value)

    def is_safe_callable(self, obj: Any) -> bool:
        """The methods above, what templates define, and Jinja's own functions."""
        of = getattr(obj, "__self__", None)
        plain = isinstance(of, tuple(METHODS)) or getattr(obj, "is_a_format", False) or any(obj is one for one in self.globals.values())
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
        """Refuses what would be too large before it is made."""
        match operator:
            case "*":
                _no_large_product(left, right)
            case "+":
                no_more(size_of(left) + size_of(right))
            case "**" if abs(left) > MOST or abs(right) > WIDEST:
                raise OverflowError(f"{left} ** {right} is too large")
            case "%" if isinstance(left, str):
                _no_wide_format(left, right)
        return super().call_binop(context, operator, left, right)


class Sums(NodeTransformer):
    """Makes ``one ~ other`` a sum of texts, so that the bound of sums holds for it."""

    def visit_Concat(self, node: nodes.Concat, *args: Any, **kwargs: Any) -> nodes.Node:  # noqa: N802 (Jinja's name)
        """The sum."""
        self.generic_visit(node, *args, **kwargs)
        texts: list[nodes.Expr] = [nodes.Filter(one, "string", [], [], None, None, lineno=node.lineno) for one in node.nodes]
        return reduce(lambda total, one: nodes.Add(total, one, lineno=node.lineno), texts)


def no_more(size: int) -> None:
    """Raises OverflowError above the bound."""
    if size > MOST:
        raise OverflowError(f"it would make more than {MOST:,} characters")


def size_of(value: Any) -> int:
    """About how many signs a value has when it is written.

    Raises:
        OverflowError: as soon as they are more than the bound, however often one list stands in another.
    """
    # What stands in many places is counted once: by identity, and all of it is held by the value.
    size, known, left = 0, dict[int, int](), [(0, 0, iter((value,)))]
    while left:
        whole, before, parts = left[-1]
        for one in parts:
            size += len(one) if isinstance(one, str) else known.get(id(one), 1)
            no_more(size)
            if isinstance(one, list | tuple | dict | set | frozenset) and id(one) not in known:
                left.append((id(one), size - 1, iter([*one.keys(), *one.values()] if isinstance(one, dict) else one)))
                break
        else:
            left.pop()
            known[whole] = size - before
    return size


@jinja2.pass_context
def bounded(context: Context, value: Any) -> Any:
    """A value that is about to be written."""
    if type(value) is str:
        no_more(len(value))
    else:
        size_of(value)
    return value


@jinja2.pass_environment
def keyed(environment: jinja2.Environment, rows: Iterable[Any], name: str, value: str | None = None) -> dict[Any, Any]:
    """Rows, or one attribute of them, by another of their attributes."""
    key, of = make_attrgetter(environment, name), make_attrgetter(environment, value)
    return {key(row): of(row) if value else row for row in rows}


def _no_large_product(left: Any, right: Any) -> None:
    for one, times in ((left, right), (right, left)):
        if isinstance(times, int) and isinstance(one, str | list | tuple):
            no_more(max(size_of(one), 1) * times)
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 4096:
        raise OverflowError("a product of numbers is too large")


def _no_wide_format(text: str, *values: Any) -> None:
    if WIDE.search(text):
        raise OverflowError(f'a width in "{text[:40]}" is too large')
    size_of([text, *values])


def _guarded(made: Callable[..., Any], narrow: bool) -> Callable[..., Any]:
    """A filter that is given nothing too large; with ``narrow`` its numbers are widths."""

    @wraps(made)  # what Jinja passes to the one it passes to the other
    def guarded(*values: Any, **named: Any) -> Any:
        size_of([*values, *named.values()])
        if narrow and any(isinstance(one, int) and abs(one) > WIDEST for one in (*values[1:], *named.values())):
            raise OverflowError(f"a width above {WIDEST} is too large")
        return made(*values, **named)

    return guarded


def _joined(made: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(made)
    def joined(first: Any, value: Any, d: str = "", attribute: Any = None) -> Any:
        values = list(value)
        no_more(size_of(values) + len(values) * len(str(d)))
        return made(first, values, d, attribute)

    return joined


@jinja2.pass_eval_context
def _replaced(context: nodes.EvalContext, value: Any, old: str, new: str, count: int | None = None) -> Any:
    text = str(value)
    no_more(len(text) + text.count(str(old)) * len(str(new)))
    return jinja2.filters.do_replace(context, value, old, new, count)


def _formatted(value: str, *values: Any, **named: Any) -> str:
    _no_wide_format(str(value), values, named)
    return jinja2.filters.do_format(value, *values, **named)


FIX = "fix the template: it may read its variables, within bounds, and call plain methods of texts, lists and mappings"
# Names that are told where one is not known.
SHOWN = 30


class Missing(jinja2.StrictUndefined):
    """A name that is not there, told with those that are."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        of = self._undefined_obj
        known = list(of) if isinstance(of, dict) else getattr(of, "__dataclass_fields__", ())
        names = ", ".join(sorted(map(str, known))[:SHOWN])
        return f'"{self._undefined_name}" is not known; use one of {names}' if names else super()._undefined_message


class Within(jinja2.FileSystemLoader):
    """The templates of a folder and no other file: a link that leads out of it is not followed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder = folder.resolve()

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """The text of a template of the folder."""
        if not (self._folder / template).resolve().is_relative_to(self._folder):
            raise jinja2.TemplateNotFound(template, f'"{template}" lies outside the folder')
        return super().get_source(environment, template)


@cache
def environment(folder: Path | None) -> jinja2.Environment:
    """A sandbox over a folder (none: a template stands alone), which keeps what it has compiled of a file until that is changed.

    Only ``*.html.j2`` is escaped: prompts and cards are plain text.
    """
    return Sandbox(
        loader=Within(folder) if folder else None,
        undefined=Missing,
        autoescape=jinja2.select_autoescape(["html.j2"], default_for_string=False, default=False),
        trim_blocks=True,
        lstrip_blocks=True,
        # What could be reckoned while compiling is left to rendering, where the bounds are.
        optimized=False,
        finalize=bounded,
    )


def rendered(where: object, pieces: Callable[[], Iterable[str]]) -> str:
    """What a template writes.

    Raises:
        InputError: that names the template, for whatever the sandbox refuses or the template itself does wrong.
    """
    found: list[str] = []
    size = 0
    try:
        for piece in pieces():
            size += len(piece)
            no_more(size)
            found.append(piece)
    except EmpathyEvalError:
        raise
    except Exception as error:  # a stranger's template may fail in any way
        raise refusal(where, error) from error
    text = "".join(found)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise refusal(where, ValueError(f"it writes half of a surrogate pair ({text[error.start]!a})")) from error
    return text


def refusal(where: object, error: Exception) -> InputError:
    """The error for a template that was stopped, or that failed."""
    said = " ".join(str(error).split()) or type(error).__name__
    what = "is stopped" if isinstance(error, SecurityError | OverflowError | jinja2.TemplateNotFound) else "cannot be rendered"
    return input_error(f"{where}{_line(where, error)}", f"{what}: {shortened(said, 200)}", FIX)


def _line(where: object, error: BaseException) -> str:
    """The line of the template in which it happened, with its name where it is another one's; empty if that cannot be known."""
    lines = [
        f"{f': {template.name}' if template.name not in (None, where) else ''}: line {template.get_corresponding_lineno(line)}"
        for frame, line in walk_tb(error.__traceback__)
        if isinstance(template := frame.f_globals.get("__jinja_template__"), jinja2.Template)
    ]
    return lines[-1] if lines else ""
