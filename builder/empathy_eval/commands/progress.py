"""What is shown of a run while it runs: on a terminal a line that is kept current, elsewhere a line a minute."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import logging
import os
import sys
import threading
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from empathy_eval.base.clock import now, span
from empathy_eval.base.errors import plain

if TYPE_CHECKING:
    from empathy_eval.generation.course import Course

# Seconds between two looks, between two pictures on a terminal, and between two lines of the same elsewhere.
LOOK, PICTURE, LINE = 0.25, 1.0, 60.0
# Seconds of which a rate is made, and after which it is said that there is nothing to tell yet.
WINDOW, UNKNOWN = 60.0, 1.0
READY = "getting ready"


class Display(logging.Handler):
    """Shows the course of a run on a stream; :meth:`look` is called again and again, and writes when there is something to tell.

    As a handler of warnings it writes them between its lines.
    """

    def __init__(self, verb: str, course: Course, stream: TextIO, *, terminal: bool, clock: Callable[[], float] = now) -> None:
        super().__init__(logging.WARNING)
        self._verb, self._course, self._stream, self._terminal, self._clock = verb, course, stream, terminal, clock
        self._began = clock()
        # When each thing was told last, by what it is.
        self._told = dict[str, float]()
        self._seen = deque[tuple[float, int, int]]()
        self._rows = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a warning; the lines that are kept current go on below it. Who warns goes on where nobody reads it any more."""
        with contextlib.suppress(OSError, ValueError):
            self._draw([plain(record.getMessage())])
            self._stream.write("\n")
        self._rows, self._told = 0, {} if self._terminal else self._told

    def look(self) -> None:
        """Writes what is to be told by now."""
        with self.lock or contextlib.nullcontext():  # a warning may come from another thread
            self._look(self._clock())

    def _look(self, at: float) -> None:
        notices = [(one.key, one.words) for one in self._course.notable(at)]
        if self._terminal:
            self._picture(at, notices)
            return
        state = self.state(at)
        if state != READY or at - self._began >= UNKNOWN:
            notices = [(READY if state == READY else "state", state), *notices]
        for key, words in notices:
            if at - self._told.get(key, -LINE) >= LINE:
                self._told[key] = at
                self._stream.write(plain(f"{self._verb}: {words}\n"))
        self._stream.flush()

    def _picture(self, at: float, notices: list[tuple[str, str]]) -> None:
        """Draws the lines anew in the place of those before, once a second or when there is something else to tell."""
        keys = ", ".join(key for key, _ in notices)
        if at - self._told.get(keys, -PICTURE) < PICTURE:
            return
        self._told = {keys: at}
        width = 80
        with contextlib.suppress(OSError, ValueError):
            width = os.get_terminal_size(self._stream.fileno()).columns
        rows = [plain(f"{self._verb}: {words}") for words in (self.state(at), *(words for _, words in notices))]
        self._draw([shortened(row, width) for row in rows])

    def _draw(self, rows: list[str]) -> None:
        if not self._terminal:
            self._stream.write("\n".join(rows))
            return
        # To the first of the rows before, each cleared as it is written; what is below is cleared too.
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        self._stream.write(f"\r{up}" + "\n".join(f"\x1b[K{row}" for row in rows) + "\x1b[J")
        self._stream.flush()
        self._rows = len(rows)

    def finish(self) -> None:
        """Leaves how it stood at the end."""
        if self._terminal and self._rows:
            self._draw([plain(f"{self._verb}: {self.state(self._clock())}")])
            self._stream.write("\n")
            self._stream.flush()

    def state(self, at: float) -> str:
        """How far the run is: items and requests against their totals, rate, cost, what was not taken, and how long it will take."""
        course = self._course
        done, total = course.batch
        if total:
            return f"{done:,} of {total:,} requests of the batches under way are done"
        summary, counts, expected = course.summary, course.counts(), course.expected()
        if summary is None:
            return READY
        ended, answered, replayed = sum(summary.status.values()), counts["answered"], min(counts["replayed"], counts["answered"])
        about = "about " if ended < summary.total else ""
        told = [f"{ended:,} of {summary.total:,} {summary.things}"]
        if expected:
            told.append(f"{answered:,} of {about}{expected:,} requests" + f" ({replayed:,} from the ledger)" * bool(replayed))
        rate = self._rate(at, answered, replayed)
        told += [f"{rate:.3g} a second" if rate >= 1 else f"{rate * 60:.3g} a minute"] if rate else []
        told += self._cost()
        told += [f"{counts[name]:,} {name}" for name in ("rejected", "missing") if counts[name]]
        told += [f"{counts['refused']:,} answers not taken"] if counts["refused"] else []
        many, reason = course.again(at)
        told += [f"{many:,} sent again ({reason})"] if many else []
        told += [f"{span((expected - answered) / rate)} left"] if rate and expected > answered else []
        return ", ".join(told)

    def _rate(self, at: float, answered: int, replayed: int) -> float:
        """Answers a second in the last minute: new ones, or where there are none what the ledger gives."""
        seen = self._seen
        if not seen or at - seen[-1][0] >= PICTURE:
            seen.append((at, answered, answered - replayed))
        while len(seen) > 2 and at - seen[0][0] > WINDOW:
            seen.popleft()
        then, all_then, new_then = seen[0]
        more = (answered - replayed - new_then) or (answered - all_then)
        return more / (at - then) if at > then and more > 0 else 0.0

    def _cost(self) -> list[str]:
        cost, budget = self._course.cost(), self._course.summary and self._course.summary.budget
        if cost.dollars:
            return [f"${cost.dollars:.4f} of ${budget.dollars:.2f}" if budget and budget.dollars is not None else f"${cost.dollars:.4f}"]
        if not cost.tokens:
            return []
        return [f"{cost.tokens:,} of {budget.tokens:,} tokens" if budget and budget.tokens is not None else f"{cost.tokens:,} tokens"]


def shortened(row: str, width: int) -> str:
    """A row that leaves the last of so many cells of a terminal free; a wide letter has two."""
    ends = list(itertools.accumulate(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in row))
    return row if not ends or ends[-1] < width else row[: bisect.bisect_right(ends, width - 2)] + "…"


@contextlib.contextmanager
def shown(verb: str, course: Course) -> Iterator[None]:
    """Shows the course of a run on standard error, in a thread of its own: work that keeps the event loop busy does not hold it up."""
    terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    display, over = Display(verb, course, sys.stderr, terminal=terminal), threading.Event()
    log = logging.getLogger("empathy_eval")

    def look() -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            while not over.wait(LOOK):
                display.look()

    thread = threading.Thread(target=look, name="empathy-eval progress", daemon=True)
    thread.start()
    log.addHandler(display)
    try:
        yield
    finally:
        log.removeHandler(display)
        over.set()
        thread.join()
        with contextlib.suppress(OSError, ValueError):
            display.finish()
