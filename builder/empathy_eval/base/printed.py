"""Results that print as their command's table, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import NOT_INSTALLED, input_error, plain
from empathy_eval.base.table_text import TableText, latex, markdown

if TYPE_CHECKING:
    import pandas as pd


# What a notebook shows of a result at most, in lines and in signs.
MOST_LINES, MOST_SIGNS = 60, 4000
# By the name of a class, the module and the function that gives its table. Tables are in a later room, which tells of them here.
_TABLES: dict[str, tuple[str, str]] = {}


def register_tables(tables: Mapping[str, tuple[str, str]]) -> None:
    """Registers by class name the module and function that print a result; those lie in a later room."""
    _TABLES.update(tables)


class Printable:
    """A result whose text is the table of its command. Its ``repr`` is one line, so that consoles stay readable."""

    def head(self) -> Sequence[str]:
        """The lines above the table: what the result is about."""
        return ()

    def _table(self) -> TableText:
        """The table of its command."""
        module, name = _TABLES[type(self).__name__]
        table: TableText = getattr(import_module(module), name)(self)
        return table

    def __str__(self) -> str:
        if type(self)._table is Printable._table and type(self).__name__ not in _TABLES:
            return repr(self)
        return plain("\n".join([*self.head(), "", self._table()] if self.head() else [self._table()]))

    def to_markdown(self) -> str:
        """The output of its command as Markdown."""
        table = self._table()
        return plain(markdown([*self.head(), "", *table.lines, "", *table.settings]))

    def to_latex(self) -> str:
        """The tables of its command as LaTeX with booktabs; captions name what they show."""
        table = self._table()
        return plain(latex(table.lines, self.head(), table.settings))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{''.join(f': {plain(line)}' for line in self.head()[:1])}; print() shows its table>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(truncated(str(self)))}</pre>"


def truncated(text: str) -> str:
    """The first lines of a text, as many as a notebook should show, and the number of the others."""
    lines, kept, size = text.split("\n"), list[str](), 0
    for line in lines[:MOST_LINES]:
        size += len(escape(line)) + 1
        if size > MOST_SIGNS:
            break
        kept.append(line)
    more = len(lines) - len(kept)
    return "\n".join([*kept, *([f"… {more:,} more lines: print() the result, or use to_json()"] if more else [])])


def data_frame(records: Iterable[Mapping[str, Any]], columns: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    """A row for each record; the columns ``numbers`` are floats, with NaN for None.

    Raises:
        InputError: if pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise input_error("to_pandas", NOT_INSTALLED, "pip install pandas, or use to_json()") from error
    return pd.DataFrame(list(records), columns=list(columns)).astype(dict.fromkeys(numbers, "float64"))
