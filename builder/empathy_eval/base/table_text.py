"""Tables for a terminal, for Markdown and for LaTeX: cells under each other, whatever the cells hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

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


class Row(str):
    """A line of a table that remembers its cells; ``right`` are the places that are flush right. The rows of a table share ``table``."""

    cells: tuple[str, ...]
    right: frozenset[int]
    table: object

    @classmethod
    def of(cls, line: str, cells: Sequence[str], right: frozenset[int], table: object) -> Row:
        """A row of these cells, whose line for a terminal is ``line``."""
        row = cls(line)
        row.cells, row.right, row.table = tuple(cells), right, table
        return row


class Text(str):
    """A text for a terminal that remembers its lines, and with them its tables; ``settings`` are lines that a paper has and it has not."""

    lines: tuple[str, ...]
    settings: tuple[str, ...]


def text_of(lines: Iterable[str], settings: Iterable[str] = ()) -> Text:
    """The lines as one text; of several empty lines one is left, and none at the ends."""
    kept = list[str]()
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    text = Text("\n".join(kept))
    text.lines, text.settings = tuple(kept), tuple(settings)
    return text


def lined(rows: Sequence[Sequence[str]], left: int = 1, *, right: Sequence[int] | None = None, head: bool = True) -> list[Row]:
    """Rows of equally many cells as lines; a column is as wide as its widest cell. The ``head``, the first row, alone is no table: no line.

    The first ``left`` columns are flush left, the others flush right; or, with ``right``, these places are flush right and the others left.
    """
    if len(rows) <= head:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    flush = frozenset(range(left, len(widths)) if right is None else right)

    def put(place: int, cell: str) -> str:
        return cell.rjust(widths[place]) if place in flush else cell.ljust(widths[place])

    table = object()
    return [Row.of(GAP.join(put(place, cell) for place, cell in enumerate(row)).rstrip(), row, flush, table) for row in rows]


def _blocks(lines: Iterable[str]) -> list[list[str]]:
    """The rows of a table, the lines of a paragraph, or nothing between two of them."""
    return [list(some) if key else [] for key, some in groupby(lines, key=lambda line: line.table if isinstance(line, Row) else bool(line))]


def _rows(block: Sequence[str]) -> list[Row]:
    return [line for line in block if isinstance(line, Row)]


def markdown(lines: Iterable[str]) -> str:
    """The same lines as Markdown: tables with a head, and a paragraph a block of other lines."""
    blocks = []
    for block in filter(None, _blocks(lines)):
        if rows := _rows(block):
            cells = [[MARKDOWN.sub(r"\\\1", cell.strip()) for cell in row.cells] for row in rows]
            bars = ["---:" if place in rows[0].right else ":---" for place in range(len(cells[0]))]
            blocks.append("\n".join(f"| {' | '.join(row)} |" for row in (cells[0], bars, *cells[1:])))
        else:
            blocks.append("  \n".join(MARKDOWN.sub(r"\\\1", line.strip()) for line in block))
    return "\n\n".join(blocks) + "\n"


def latex(lines: Iterable[str], of: Sequence[str] = (), settings: Sequence[str] = ()) -> str:
    """The tables among the lines as LaTeX with booktabs, each with a caption and notes.

    What stands straight before a table, and what it is ``of`` (release, version, settings), is its caption. Other lines are notes of the
    table before them; those of the last end with the ``settings`` of all figures.
    """
    tables = list[tuple[list[str], list[Row], list[str]]]()
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


def _table(before: Sequence[str], rows: Sequence[Row], notes: Sequence[str], of: Sequence[str]) -> str:
    form = "".join("r" if place in rows[0].right else "l" for place in range(len(rows[0].cells)))
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
