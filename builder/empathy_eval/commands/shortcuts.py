"""``shortcuts``: audit of a release for shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.files import write_whole
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.printed import Printable
from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.commands.command import ONE_OF, PAPER, RELEASE, Command, Option, printed, scoring_session

if TYPE_CHECKING:
    from empathy_eval.evaluation.inversion.rows import ContrastAudit, ShortcutAudit
    from empathy_eval.statistics.estimate import Estimate

EXAMPLES = """\
examples:
  empathy-eval shortcuts build/demo/release
  empathy-eval shortcuts build/demo/release --by scenario --json
  empathy-eval shortcuts build/demo/release --out words.json

docs/shortcuts.md explains each shortcut, and what the shortcut line does not show.
"""


@takes_paths
def shortcuts(
    release: str | Path, *, by: str = "dialogue", without: Sequence[str] = (), out: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> ShortcutAudit:  # fmt: skip
    """Measures how often shortcuts, which do not read the context, separate the empathetic text of a pair from the apathetic one.

    The release is a folder, or a Hub name such as ``org/name@v1.0.0``. Classifiers are scored out of fold. The embedding is a shortcut
    only if the configuration of the release has it. ``progress`` is called with the number of texts that VADER has scored.

    Raises
    ------
    InputError
        If it is no release or cannot be fetched, ``by`` or ``without`` has an unknown value, the packages of the embedding are not
        installed, or a word list is requested and there are no pairs to learn from.
    """
    from empathy_eval.evaluation.shortcuts.shortcuts import audit, learn_word_list
    from empathy_eval.releases.hub.fetch import release_folder

    with scoring_session(cache=False, progress=progress) as scoring:
        folder = release_folder(release)
        result = audit(folder, by=by, without=without, scoring=scoring)
        if out is not None:
            write_whole(Path(out), learn_word_list(folder, by=by).text)
        return result


def _shown(result: ShortcutAudit, features: bool = False, json: bool = False, latex: bool = False, markdown: bool = False) -> int:
    return printed(DirectionTable(result) if features and not json else result, json, latex, markdown)


class DirectionTable(Printable):
    """Audit that prints as the table of feature directions."""

    def __init__(self, audit: ShortcutAudit) -> None:
        self._audit = audit

    def head(self) -> Sequence[str]:
        """Returns the provenance of the audit."""
        return self._audit.head()

    def _table(self) -> TableText:
        return direction_table(self._audit)


def direction_table(audit: ShortcutAudit) -> TableText:
    """Returns the direction of each plain feature as lines of text, one column per contrast."""
    audited = [contrast for contrast in audit.contrasts if contrast.directions]
    if not audited:
        return table_text(["no plain features: their word lists are English, and there must be pairs"])
    directions = zip(*(contrast.directions for contrast in audited), strict=True)
    features = [(f"  {rows[0].feature}", *(_difference(row.difference) for row in rows)) for rows in directions]
    lines: list[str] = ["standardised difference (Cohen's d), empathetic minus apathetic, with 95 % intervals:"]
    lines += aligned([("  feature", *(row.contrast for row in audited)), *features], right=tuple(range(1, len(audited) + 1)))
    leaning = [contrast.contrast for contrast in audited if contrast.leans_to_apathy]
    if leaning:
        warning = "trained on these, a metric learns that they are cold."
        lines.append(f"Positive words stand more often in apathetic texts ({'; '.join(leaning)}): {warning}")
    return table_text([*lines, f"settings: {audited[0].directions[0].signature}"])


def _difference(estimate: Estimate | None) -> str:
    if estimate is None:
        return "none"
    return f"{estimate.value:+.2f}" if estimate.low is None else f"{estimate.value:+.2f} [{estimate.low:+.2f}, {estimate.high:+.2f}]"


def shortcut_table(audit: ShortcutAudit) -> TableText:
    """Returns the audit as lines of text, one block per contrast."""
    blocks = [_contrast(contrast, audit.by) for contrast in audit.contrasts] + ([_first(audit)] if audit.first else [])
    lines = [line for block in blocks for line in (*block, "")]
    lines.append("VADER, echo and length learn nothing: they choose the text with the higher value. --json has all settings.")
    return table_text(lines)


def _contrast(contrast: ContrastAudit, by: str) -> Iterator[str]:
    over = f"{contrast.pairs} pairs of {contrast.dialogues} dialogues"
    yield f"{contrast.contrast}, {over}{f', {contrast.folds} folds by {by}' if contrast.folds > 1 else ''}"
    rows = [(f"  {row.name}", *_accuracy(row.accuracy, row.why)) for row in contrast.shortcuts]
    yield from aligned([("  shortcut", "accuracy", "95 % interval"), *rows], right=(1,))
    if contrast.line and contrast.line.accuracy:
        yield f"  shortcut line: {contrast.line.accuracy.value:.3f} ({contrast.line.name})"
    for stance, words in ((contrast.kind, contrast.telltale_kind), (contrast.cold, contrast.telltale_cold)):
        if words:
            listed = ", ".join(f"{word.word} {word.kind}/{word.cold}" for word in words)
            yield f"  telltale words of {stance} ({contrast.kind}/{contrast.cold}): {listed}"
    for name, pairs in (("easiest", contrast.easiest), ("hardest", contrast.hardest)):
        if pairs:
            yield f"  {name}: " + ", ".join(f"{pair.pair_id} {pair.margin:+.2f}" for pair in pairs)


def _first(audit: ShortcutAudit) -> Iterator[str]:
    yield "words alone, with the first candidate that passed in place of the chosen one"
    rows = []
    for row in audit.first:
        accuracy, changed = _accuracy(row.shortcut.accuracy, row.shortcut.why), f"{row.others} of {row.shortcut.pairs} pairs"
        rows.append((f"  {row.contrast}", *accuracy, f"another text in {changed}"))
    yield from aligned(rows, right=(1,), head=False)


def _accuracy(estimate: Estimate | None, why: str | None) -> tuple[str, str]:
    """Formats an accuracy and its interval, or the reason why there is none."""
    if estimate is None:
        return "", f"not defined: {why}"
    return f"{estimate.value:.3f}", "" if estimate.low is None or estimate.high is None else f"[{estimate.low:.3f}, {estimate.high:.3f}]"


COMMAND = Command(
    shortcuts,
    "measure how well words alone, length or sentiment separate the stances",
    "Audits a release for shortcuts: words, characters, length and punctuation, sentiment, and words repeated from the seeker. Measures "
    "how often each separates the empathetic text of a pair from the apathetic one. What learns is scored out of fold. Lists the telltale "
    "words, and the easiest and hardest pairs. A metric with a lower accuracy than these has not shown that it measures empathy.",
    {
        **RELEASE,
        "--by {dialogue,scenario}": "the unit of the folds (default: dialogue); scenario is stricter",
        "--without NAME": "leave this shortcut out; only embedding can be left out, for example if its packages are missing",
        "--out LIST.json": "also write the frozen word list: weights of words alone, by which a build chooses among candidates "
        "(word_list: LIST.json)",
        "--features": "print the direction of each plain feature instead: how much more of it empathetic texts have than apathetic ones",
        "--json": Option("print everything as JSON, each figure with its settings", ONE_OF),
        **PAPER,
    },
    EXAMPLES,
    _shown,
    staged=True,
)
