"""``describe``: the size and the words of releases and other files of dialogues, beside each other and beside the paper's table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.paths import takes_paths
from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.commands.command import A_RELEASE, ONE_OF, PAPER, Command, Option

if TYPE_CHECKING:
    from empathy_eval.evaluation.corpus.data_sets import Described

EXAMPLES = """\
examples:
  empathy-eval describe build/demo/release
  empathy-eval describe build/demo/release ESConv.json train.csv --markdown
  empathy-eval describe mine.jsonl --csv

A .jsonl file has a dialogue a line, {"turns": [{"role": "seeker", "text": …}, …]}, or a chat, {"messages": [{"role": "user", …}]}. A .json
file is a list of these, as ESConv publishes it. A .csv file is one of EmpatheticDialogues. docs/own_texts.md has the keys.
"""
FILES = (".jsonl", ".json", ".csv")


@takes_paths
def describe(data: str | Path | Sequence[str | Path]) -> Described:
    """Describes releases (folders, or Hub names such as ``org/name@v1.0.0``) and files of dialogues, beside each other.

    Dialogues, utterances, utterances a dialogue, words an utterance, strategies and scenarios, as in Table 1 of "EmpathyScore";
    by role turns, words, distinct n-grams and VADER's sentiment. The paper's rows stand beside them.

    Raises:
        InputError: for what is neither a release nor such a file, a faulty file, and two of one name.
    """
    from empathy_eval.evaluation.corpus.data_sets import describe
    from empathy_eval.releases.hub.fetch import release_folder

    given = [data] if isinstance(data, str | Path) else data
    return describe([Path(path) if Path(path).suffix.lower() in FILES else release_folder(path) for path in given])


def description_table(result: Described) -> TableText:
    """A figure a row, a data set a column; empty where nothing is known."""
    from empathy_eval.evaluation.corpus.data_sets import figures_of

    columns = [(dataset.name, figures_of(dataset)) for dataset in (*result.sets, *result.paper)]
    rows = [(name, *(_cell(figures[name]) for _, figures in columns)) for name in columns[0][1]]
    return table_text([*aligned([("", *(name for name, _ in columns)), *rows]), result.signature])


def _cell(value: float | int | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if abs(value) < 1 else f"{value:.1f}"


COMMAND = Command(
    describe,
    "describe releases and other files of dialogues",
    "Prints the size, turns, words, strategies and scenarios of releases and files of dialogues beside each other and beside the paper's "
    "table, and by role distinct n-grams over equally many words and sentiment.",
    {
        "data=RELEASE_OR_FILE": Option(f"a release, {A_RELEASE}; or a file of dialogues: .jsonl, .json, .csv", type=str, nargs="+"),
        "--json": Option("print all figures as JSON", ONE_OF),
        "--csv": Option("print all figures as CSV, a line a figure", ONE_OF),
        **PAPER,
    },
    EXAMPLES,
    staged=True,
)
