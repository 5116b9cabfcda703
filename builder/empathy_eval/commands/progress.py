"""Progress display on standard error: a status line on a terminal; for runs, elsewhere one line a minute."""

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
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from empathy_eval.base.errors import plain
from empathy_eval.base.stages import Stages, duration_text, now, track_stages

if TYPE_CHECKING:
    from empathy_eval.completions.requests import Notice
    from empathy_eval.generation.summary import RunProgress

# Seconds between two checks, two redraws of a terminal, and two lines of the same kind elsewhere.
REFRESH, REDRAW, REPEAT = 0.25, 1.0, 60.0
# Seconds over which a rate is computed, and after which a job without progress is reported.
WINDOW, UNKNOWN = 60.0, 1.0
READY = "getting ready"


class ProgressTask(Protocol):
    """Displayed work. If it is ``lasting``, it is reported without a terminal too, and its last line stays on a terminal."""

    lasting: bool

    def state(self, at: float) -> str:
        """Returns the progress at a time on one line; empty while there is nothing to show."""
        ...

    def notices_at(self, at: float) -> Sequence[Notice]:
        """Returns notices at a time."""
        ...


class Display(logging.Handler):
    """Writes progress to a stream, on each call of :meth:`refresh` that has something new; logged warnings appear between its lines."""

    def __init__(self, verb: str, work: ProgressTask, stream: TextIO, *, terminal: bool, clock: Callable[[], float] = now) -> None:
        super().__init__(logging.WARNING)
        self._verb, self._work, self._stream, self._terminal, self._clock = verb, work, stream, terminal, clock
        self._began = clock()
        # Time of the last line by its kind.
        self._written = dict[str, float]()
        self._rows = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a warning above the status lines; ignores a closed stream."""
        with contextlib.suppress(OSError, ValueError):
            self._draw([plain(record.getMessage())])
            self._stream.write("\n")
        self._rows, self._written = 0, {} if self._terminal else self._written

    def refresh(self) -> None:
        """Writes what is due."""
        with self.lock or contextlib.nullcontext():  # a warning may come from another thread
            self._refresh(self._clock())

    def _refresh(self, at: float) -> None:
        notices = [(notice.key, notice.words) for notice in self._work.notices_at(at)]
        if self._terminal:
            self._picture(at, notices)
            return
        state = self._work.state(at)
        if state != READY or at - self._began >= UNKNOWN:
            notices = [(READY if state == READY else "state", state), *notices]
        for key, words in notices:
            if at - self._written.get(key, -REPEAT) >= REPEAT:
                self._written[key] = at
                self._stream.write(plain(f"{self._verb}: {words}\n"))
        self._stream.flush()

    def _picture(self, at: float, notices: list[tuple[str, str]]) -> None:
        """Redraws the status lines, once a second or when the notices change."""
        keys = ", ".join(key for key, _ in notices)
        if at - self._written.get(keys, -REDRAW) < REDRAW:
            return
        self._written = {keys: at}
        width = 80
        with contextlib.suppress(OSError, ValueError):
            width = os.get_terminal_size(self._stream.fileno()).columns
        rows = [plain(f"{self._verb}: {words}") for words in (self._work.state(at), *(words for _, words in notices)) if words]
        if rows or self._rows:  # otherwise leave the terminal to other output
            self._draw([truncated(row, width) for row in rows])

    def _draw(self, rows: list[str]) -> None:
        if not self._terminal:
            self._stream.write("\n".join(rows))
            return
        # Back to the first row; each row is cleared as it is written, and so is the rest below.
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        self._stream.write(f"\r{up}" + "\n".join(f"\x1b[K{row}" for row in rows or [""]) + "\x1b[J")
        self._stream.flush()
        self._rows = len(rows)

    def finish(self) -> None:
        """Leaves the last line of lasting work, and removes that of other work."""
        if self._terminal and self._rows:
            self._draw([plain(f"{self._verb}: {self._work.state(self._clock())}")] if self._work.lasting else [])
            self._stream.write("\n" * self._work.lasting)
            self._stream.flush()


class RunDisplay:
    """Progress of a run that calls models."""

    lasting = True

    def __init__(self, course: RunProgress) -> None:
        self._course, self._seen = course, deque[tuple[float, int, int]]()

    def notices_at(self, at: float) -> list[Notice]:
        """Returns pending stops, and endpoints that do not answer."""
        return self._course.notices_at(at)

    def state(self, at: float) -> str:
        """Returns items and requests with their totals, rate, cost, refused answers and remaining time."""
        course = self._course
        done, total = course.batch
        if total:
            return f"{done:,} of {total:,} requests in batches are done"
        summary, counts, expected = course.summary, course.counts(), course.expected()
        if summary is None:
            return READY
        ended, answered, replayed = sum(summary.status.values()), counts["answered"], min(counts["replayed"], counts["answered"])
        about = "about " if ended < summary.total else ""
        parts = [f"{ended:,} of {summary.total:,} {summary.things}"]
        # Items end in the order of the plan: most of a short run is over before the first one ends.
        parts[0] += f" ({counts['begun']:,} begun)" if counts["begun"] > ended else ""
        if expected:
            parts.append(f"{answered:,} of {about}{expected:,} requests" + f" ({replayed:,} from the ledger)" * bool(replayed))
        rate = self._rate(at, answered, replayed)
        parts += [f"{rate:.3g} a second" if rate >= 1 else f"{rate * 60:.3g} a minute"] if rate else []
        parts += self._cost()
        parts += [f"{counts[name]:,} {name}" for name in ("rejected", "missing") if counts[name]]
        parts += [f"{counts['refused']:,} answers not accepted"] if counts["refused"] else []
        many, reason = course.retrying(at)
        parts += [f"{many:,} sent again ({reason})"] if many else []
        parts += [f"{duration_text((expected - answered) / rate)} left"] if rate and expected > answered else []
        return ", ".join(parts)

    def _rate(self, at: float, answered: int, replayed: int) -> float:
        """Returns answers per second in the last minute: new ones or, without new ones, those from the ledger."""
        seen = self._seen
        if not seen or at - seen[-1][0] >= REDRAW:
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


class StageDisplay:
    """Progress of the stages of a job."""

    lasting = False

    def __init__(self, stages: Stages) -> None:
        self._stages, self._number, self._began = stages, -1, 0.0

    def notices_at(self, at: float) -> list[Notice]:
        """Returns no notices."""
        return []

    def state(self, at: float) -> str:
        """Returns the name of the stage, its count, elapsed time and estimated remaining time."""
        stages = self._stages
        if stages.name is None:
            return READY
        if self._number != stages.number:
            self._number, self._began = stages.number, at
        done, total, passed = stages.done, stages.total, at - self._began
        parts = [stages.name] if stages.name else []
        if parts and (total or done):
            parts.append(f"{done:,} of {total:,} {stages.things}" if total else f"{done:,} {stages.things}")
        parts += [duration_text(passed)] if parts and passed >= UNKNOWN else []
        parts += [f"{duration_text(passed * (total - done) / done)} left"] if parts and total > done > 0 and passed >= UNKNOWN else []
        return ", ".join(parts)


def truncated(row: str, width: int) -> str:
    """Truncates a row to fewer than ``width`` terminal cells; a wide character has two."""
    ends = list(itertools.accumulate(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in row))
    return row if not ends or ends[-1] < width else row[: bisect.bisect_right(ends, width - 2)] + "…"


@contextlib.contextmanager
def display_progress(verb: str, work: ProgressTask) -> Iterator[None]:
    """Shows work on standard error, from a thread, so that busy work does not delay it."""
    terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    if not (terminal or work.lasting):
        yield
        return
    display, over = Display(verb, work, sys.stderr, terminal=terminal), threading.Event()
    log = logging.getLogger("empathy_eval")

    def look() -> None:
        with contextlib.suppress(OSError, ValueError):  # the stream is closed
            while not over.wait(REFRESH):
                display.refresh()

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


@contextlib.contextmanager
def display_stages(verb: str) -> Iterator[None]:
    """Shows the stages of the enclosed job, on a terminal only."""
    with track_stages() as stages, display_progress(verb, StageDisplay(stages)):
        yield
