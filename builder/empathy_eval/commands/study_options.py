"""What ``study`` takes from a call in Python: each option of the kind it should be, all that are not told at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem


@dataclass(frozen=True)
class Files:
    """The tables of a study, those of later groups, that of its raters, and where its page goes."""

    tables: list[Path]
    later: list[Path]
    raters: Path | None
    page: Path | None

    @property
    def read(self) -> list[Path]:
        """All that are read."""
        return [*self.tables, *self.later, *([] if self.raters is None else [self.raters])]

    @property
    def by_option(self) -> dict[str, Sequence[Path]]:
        """Those that options name."""
        return {"add": self.later, **{name: [one] for name, one in (("raters", self.raters), ("page", self.page)) if one is not None}}


class Taken:
    """The options of a call as they are used; ``refuse`` tells of those that cannot be."""

    def __init__(self) -> None:
        self.problems = list[Problem]()

    def text(self, name: str, value: object) -> str:
        """A text that must be there."""
        if not isinstance(value, str):
            self._odd(name, value, "a text")
            return ""
        return value

    def texts(self, name: str, value: object, *, commas: bool = False) -> tuple[str, ...]:
        """Texts; a single one is itself, or with ``commas`` what stands between its commas, as on the command line."""
        if isinstance(value, str):
            return tuple(one.strip() for one in value.split(",") if value) if commas else (value,)
        found = list(value) if isinstance(value, Iterable) and not isinstance(value, bytes) else [value]
        texts = tuple(one.strip() for one in found if isinstance(one, str))
        if len(texts) < len(found):
            self._odd(name, next(one for one in found if not isinstance(one, str)), "a text, or a list of them")
        return texts

    def path(self, name: str, value: object) -> Path:
        """A path that must be there."""
        if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
            self._odd(name, value, "a path")
            return Path()
        return Path(value)

    def paths(self, name: str, value: object) -> list[Path]:
        """Paths; a single one is itself."""
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        return [self.path(name, one) for one in (value if several and isinstance(value, Iterable) else [value])]

    def files(self, table: object, add: object, raters: object, page: object) -> Files:
        """The files of a study; at least one table."""
        tables = self.paths("table", table)
        if not tables:
            self.problems.append(Problem("table", "no table is named", "name the ratings of a study"))
        people, out = (None if one is None else self.path(name, one) for name, one in (("raters", raters), ("page", page)))
        return Files(tables, self.paths("add", add), people, out)

    def _odd(self, name: str, value: object, wanted: str) -> None:
        self.problems.append(Problem(name, f'"{str(value)[:80]}" is {_kind(value)}', f"give {wanted}"))

    def refuse(self) -> None:
        """Raises an :class:`InputError` with all that is wrong, if something is."""
        if self.problems:
            raise InputError(self.problems)


def _kind(value: object) -> str:
    return "empty, or not a possible path" if isinstance(value, str | Path) else f"of the type {type(value).__name__}"
