"""Jinja templates: an unknown variable is an error, never an empty text, and a template only reads what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType

import jinja2
from jinja2.bccache import Bucket
from jinja2.exceptions import SecurityError

from empathy_eval.base.errors import EmpathyEvalError, InputError, input_error
from empathy_eval.base.sandbox import Sandbox, bounded, no_more

FIX = "a template reads what it is given, within bounds, and calls plain methods of texts, lists and mappings: mend it"


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
        undefined=jinja2.StrictUndefined,
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
    return "".join(found)


def refusal(where: object, error: Exception) -> InputError:
    """The error for a template that was stopped, or that failed."""
    said = " ".join(str(error).split()) or type(error).__name__
    what = "is stopped" if isinstance(error, SecurityError | OverflowError | jinja2.TemplateNotFound) else "cannot be rendered"
    return input_error(where, f"{what}: {said if len(said) <= 200 else f'{said[:197]}...'}", FIX)
