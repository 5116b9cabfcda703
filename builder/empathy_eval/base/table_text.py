"""Table layout for terminals, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

GAP = "  "
# What LaTeX reads as commands, and what stands for it.
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "\N{MINUS SIGN}": "$-$", "≤": r"$\leq$", "×": r"$\times$", "α": r"$\alpha$", "…": r"\ldots{}", "—": "---", "–": "--",
}  # fmt: skip
# Where a line of settings may break, and a hyphen that is a minus.
BREAK, NEGATIVE = re.compile(r"(?<=[|,])(?=\S)"), re.compile(r"(?<![\w.])-(?=\d)")
MARKDOWN = re.compile(r"([\\`*_|<>#\[\]])")


class TableLine(str):
    """A line of a table that remembers its cells; ``right`` are the right-aligned columns. Lines of one table share ``table``."""

    cells: tuple[str, ...]
    right: frozenset[int]
    table: object

    @classmethod
    def of(cls, line: str, cells: Sequence[str], right: frozenset[int], table: object) -> TableLine:
        """A line of these cells, printed as ``line``."""
        row = cls(line)
        row.cells, row.right, row.table = tuple(cells), right, table
        return row


class TableText(str):
    """A terminal text that remembers its lines and tables; ``settings`` are lines for papers only."""

    lines: tuple[str, ...]
    settings: tuple[str, ...]


def table_text(lines: Iterable[str], settings: Iterable[str] = ()) -> TableText:
    """The lines as one text. Repeated empty lines are collapsed, and those at the ends removed."""
    kept = list[str]()
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    text = TableText("\n".join(kept))
    text.lines, text.settings = tuple(kept), tuple(settings)
    return text


def aligned(rows: Sequence[Sequence[str]], left: int = 1, *, right: Sequence[int] | None = None, head: bool = True) -> list[TableLine]:
    """Rows of equally many cells as aligned lines. A table with nothing but its ``head``, the first row, has no lines.

    The first ``left`` columns are left-aligned, the others right-aligned; with ``right`` exactly these columns are right-aligned.
    """
    if len(rows) <= head:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    flush = frozenset(range(left, len(widths)) if right is None else right)

    def put(column: int, cell: str) -> str:
        return cell.rjust(widths[column]) if column in flush else cell.ljust(widths[column])

    table = object()
    return [TableLine.of(GAP.join(put(column, cell) for column, cell in enumerate(row)).rstrip(), row, flush, table) for row in rows]


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, where in a row its values are (attributes or keys, with dots between), and their format.

    The place may be a function of the row. Numbers, which have a format, are flush right; texts and intervals flush left. ``none`` stands
    for what is not there.
    """

    title: str
    path: str | Callable[[Any], object]
    form: str = ""
    none: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it is flush right."""
        return bool(self.form) and not str(self.path).endswith(INTERVAL)

    def cell(self, row: object) -> str:
        """What it says of a row."""
        value = self.path(row) if callable(self.path) else at(row, self.path)
        if value is None:
            return self.none
        return f"[{', '.join(format(end, self.form) for end in value)}]" if isinstance(value, tuple) else format(value, self.form)


# The property of an estimate that its interval is, and what its columns are called.
INTERVAL = "interval"
INTERVAL_TITLE, CORRECTED_TITLE = "95 % interval", "p (Holm)"


def at(row: object, path: str) -> Any:
    """What is at a place of a row, a number in a tuple; None beneath what is None, and where a mapping has no such key."""
    for name in path.split("."):
        if row is None:
            return None
        row = row.get(name) if isinstance(row, Mapping) else row[int(name)] if isinstance(row, tuple) else getattr(row, name)
    return row


def figure(title: str, path: str, form: str = ".3f", none: str = "", *, tested: bool = False) -> list[Column]:
    """The columns of an estimate: its value, its interval and, where it is ``tested``, its corrected p-value."""
    columns = [Column(title, f"{path}.value", form, none), Column(INTERVAL_TITLE, f"{path}.{INTERVAL}", form)]
    return [*columns, Column(CORRECTED_TITLE, f"{path}.p_corrected", ".4f")] if tested else columns


def table(columns: Sequence[Column], rows: Iterable[object], *, head: bool = True) -> list[TableLine]:
    """The rows as lines under the titles of the columns; no line without a row."""
    cells = [[column.cell(row) for column in columns] for row in rows]
    right = [place for place, column in enumerate(columns) if column.is_right]
    return aligned([[column.title for column in columns], *cells] if head else cells, right=right, head=head)


def _blocks(lines: Iterable[str]) -> list[list[str]]:
    """Groups of lines: the rows of a table, the lines of a paragraph, or nothing between two of them."""
    groups = groupby(lines, key=lambda line: line.table if isinstance(line, TableLine) else bool(line))
    return [list(block) if key else [] for key, block in groups]


def _rows(block: Sequence[str]) -> list[TableLine]:
    return [line for line in block if isinstance(line, TableLine)]


def markdown(lines: Iterable[str]) -> str:
    """The lines as Markdown: tables with a header, and other blocks as paragraphs."""
    blocks = []
    for block in filter(None, _blocks(lines)):
        if rows := _rows(block):
            cells = [[MARKDOWN.sub(r"\\\1", cell.strip()) for cell in row.cells] for row in rows]
            bars = ["---:" if column in rows[0].right else ":---" for column in range(len(cells[0]))]
            blocks.append("\n".join(f"| {' | '.join(row)} |" for row in (cells[0], bars, *cells[1:])))
        else:
            blocks.append("  \n".join(MARKDOWN.sub(r"\\\1", line.strip()) for line in block))
    return "\n\n".join(blocks) + "\n"


def latex(lines: Iterable[str], of: Sequence[str] = (), settings: Sequence[str] = ()) -> str:
    """The tables among the lines as LaTeX with booktabs, each with a caption and notes.

    The caption has the lines before a table and ``of`` (release, version, settings). Other lines are notes of the table before; those of
    the last table end with ``settings``.
    """
    tables = list[tuple[list[str], list[TableLine], list[str]]]()
    blocks, caption = _blocks(lines), list[str]()
    for before, block, after in zip([[], *blocks], blocks, [*blocks[1:], []], strict=False):
        if rows := _rows(block):
            tables.append((caption, rows, []))
            caption = []
        elif tables:
            # Between two tables, the last line is the title of the second.
            cut = len(block) if not _rows(after) else len(block) - 1 if _rows(before) else 0
            tables[-1][2].extend(block[:cut])
            caption = block[cut:]
        else:
            caption = [*caption, *block]
    if tables:
        tables[-1][2].extend(settings)
    return "% \\usepackage{booktabs}\n" + "\n".join(_table(*table, of) for table in tables)


def _table(before: Sequence[str], rows: Sequence[TableLine], notes: Sequence[str], of: Sequence[str]) -> str:
    form = "".join("r" if column in rows[0].right else "l" for column in range(len(rows[0].cells)))
    head, *body = [" & ".join(_latex(cell.strip()) for cell in row.cells) + r" \\" for row in rows]
    below = [r"\par\smallskip\begin{minipage}{\linewidth}\scriptsize\raggedright", *(_latex(line.strip()) + r"\par" for line in notes),
             r"\end{minipage}"] if notes else []  # fmt: skip
    return "\n".join([
        r"\begin{table}[htbp]", r"\centering\footnotesize\setlength{\tabcolsep}{3pt}\setlength{\belowcaptionskip}{4pt}",
        rf"\caption{{{' '.join(_latex(line.strip().rstrip('.') + '.') for line in (*before, *of))}}}",
        rf"\begin{{tabular}}{{@{{}}{form}@{{}}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", *below,
        r"\end{table}", "",
    ])  # fmt: skip


def _latex(text: str) -> str:
    parts = BREAK.split(NEGATIVE.sub("\N{MINUS SIGN}", text))
    return r"\allowbreak{}".join("".join(LATEX.get(character, character) for character in part) for part in parts)
