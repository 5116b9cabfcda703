"""Jinja templates: an unknown variable is an error, never an empty text, and a template only reads what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, TracebackType

import jinja2
from jinja2.bccache import Bucket
from jinja2.exceptions import SecurityError

from empathy_eval.base.errors import EmpathyEvalError, InputError, input_error
from empathy_eval.base.sandbox import Sandbox, bounded, no_more

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


class Compiled(jinja2.BytecodeCache):
    """What this process has compiled of a file; a file that was changed since is another."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Takes what is there."""
        bucket.code = self._kept.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keeps what was compiled."""
        if bucket.code:
            self._kept[bucket.key, bucket.checksum] = bucket.code


COMPILED = Compiled()


def environment(folder: Path | None) -> jinja2.Environment:
    """A sandbox over a folder (none: a template stands alone). Only ``*.html.j2`` is escaped: prompts and cards are plain text."""
    return Sandbox(
        loader=Within(folder) if folder else None,
        bytecode_cache=COMPILED,
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
    return input_error(f"{where}{_line(where, error)}", f"{what}: {said if len(said) <= 200 else f'{said[:197]}...'}", FIX)


def _line(where: object, error: BaseException) -> str:
    """The line of the template in which it happened, with its name where it is another one's; empty if that cannot be known."""
    lines = [
        f"{f': {template.name}' if template.name not in (None, where) else ''}: line {template.get_corresponding_lineno(trace.tb_lineno)}"
        for trace in _frames(error)
        if isinstance(template := trace.tb_frame.f_globals.get("__jinja_template__"), jinja2.Template)
    ]
    return lines[-1] if lines else ""


def _frames(error: BaseException) -> Iterator[TracebackType]:
    trace = error.__traceback__
    while trace:
        yield trace
        trace = trace.tb_next
