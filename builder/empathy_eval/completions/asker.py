"""Asking until there is a good answer: ledger first, then the model; one repair a sample, then the next sample."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from empathy_eval.base.errors import EmpathyEvalError, job_error
from empathy_eval.completions.ledger import Entry, Ledger, PendingRequest
from empathy_eval.completions.requests import About, Completion, Failure, Flaw, Model, NoAnswer, Request, Usage, read
from empathy_eval.design.configuration import APART
from empathy_eval.design.endpoints import Asks
from empathy_eval.design.kinds import ALL_KINDS, SCORE
from empathy_eval.design.prompts import Message, Prompts

T = TypeVar("T")
# What a repair request shows of a bad answer: so many characters, so many flaws.
MOST_SHOWN, MOST_FLAWS = 20_000, 100


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A good sample, judged; where it came from."""

    value: T
    model: str
    request_key: str


# Judges the parsed answer: the value it stands for, or the flaws that keep it from being taken.
Judge = Callable[[Any], Awaitable[T | list[Flaw]]]


@dataclass
class Trail:
    """What is left behind while something is asked for: samples not taken, and the ledger rows that were used."""

    failures: list[tuple[int, Failure]] = field(default_factory=list)
    usage: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    keys: set[str] = field(default_factory=set)

    def used(self, key: str, completion: Completion) -> None:
        """Counts a ledger row that the replay of this item used, once: equal requests have one."""
        if key not in self.keys:
            self.keys.add(key)
            self.usage[completion.model].update({"requests": 1, **vars(completion.usage)})

    def failed(self, request: Request, attempt: int, flaws: Sequence[Flaw], final: bool) -> None:
        """Notes a sample that is not taken, with its reasons (each once)."""
        reasons = tuple(sorted({flaw.reason for flaw in flaws}))
        self.failures.append((attempt, Failure(request.about.kind, request.about.turn, reasons, request.key, final)))

    def sorted_failures(self) -> tuple[Failure, ...]:
        """The failures by turn, kind, attempt and request: an order that no concurrency can change."""

        def place(row: tuple[int, Failure]) -> tuple[int, str, int, str]:
            attempt, one = row
            return -1 if one.turn is None else one.turn, one.kind, attempt, one.request_key or ""

        return tuple(failure for _, failure in sorted(self.failures, key=place))

    def plain_usage(self) -> dict[str, dict[str, int]]:
        """The usage by model, in sorted order."""
        return {model: dict(sorted(self.usage[model].items())) for model in sorted(self.usage)}


class Asker:
    """Answers requests from the ledger, and asks a model for the rest unless it is offline."""

    def __init__(
        self, ledger: Ledger, models: dict[str, Model], prompts: Prompts, *, samples: int = 1, repairs: int = 0, offline: bool = False,
    ) -> None:  # fmt: skip
        self.ledger = ledger
        self.models = models
        self.prompts = prompts
        self.samples = samples
        self.repairs = repairs
        self.offline = offline
        # By key or by dialogue why a model is not asked for something in this run.
        self.unasked: Mapping[str, str] = {}
        # Set once going on makes no sense: nothing more is sent then, and what is under way is still stored.
        self.stopped: EmpathyEvalError | None = None
        # Requests to models that are answered, those among them that the ledger answered, and answers that were not taken.
        self.tally: Counter[str] = Counter()
        # By key what was sent and is not stored yet: who asks the very same meanwhile waits for that answer.
        self._under_way: dict[str, asyncio.Task[Completion]] = {}

    async def ask(self, about: About, messages: list[Message], judge: Judge[T], trail: Trail, first: int = 0) -> Answer[T] | None:
        """The first good sample of the model for that kind, or None when samples are used up; every sample not taken is in the trail.

        Samples are numbered from ``first`` on: who asks for the same once more gives numbers that nobody has asked for.

        Raises:
            NoAnswer: if a request was not answered, or is not in the ledger of an offline build.
        """
        kind = ALL_KINDS[about.kind]
        model = self.models[kind.role]
        attempts = self.samples * (1 + self.repairs)
        attempt = 0
        for sample in range(first, first + self.samples):
            said = messages
            for _ in range(1 + self.repairs):
                request = Request(model.body(said, kind.answer), model.endpoint, about, sample)
                completion = await self.complete(model, request, repair=said is not messages)
                self.tally["answered"] += request.key not in trail.keys
                trail.used(request.key, completion)
                verdict = self.ruled(request, await judged(completion, kind.answer, judge))
                if not isinstance(verdict, list):
                    return Answer(verdict, completion.model, request.key)
                attempt += 1
                self.tally["refused"] += 1
                trail.failed(request, attempt, verdict, final=attempt == attempts)
                said = self._repair(messages, completion, verdict)
        return None

    def ruled(self, request: Request, verdict: T | list[Flaw]) -> T | list[Flaw]:
        """The verdict on the answer to a request, as it is; who goes through an item again hears of it here."""
        return verdict

    async def complete(self, model: Model, request: Request, *, repair: bool = False) -> Completion:
        """The completion of a request: from the ledger, or from the model and then stored before it is used. The same is sent once.

        It is a ``repair`` if it shows a bad answer and asks for a better one.
        """
        found = self.ledger.get(request.key)
        if found is not None:
            self.tally["replayed"] += ALL_KINDS[request.about.kind].delivery == "live"
            return found
        if self.offline:
            raise NoAnswer(f"not in the ledger: {request.about}, sample {request.sample}, key {request.key}")
        if self.stopped:
            raise self.stopped
        asked = self._under_way.get(request.key)
        if asked is None:
            asked = self._under_way[request.key] = asyncio.create_task(self._asked(model, request))
            asked.add_done_callback(lambda _: self._under_way.pop(request.key))
        return await asked

    async def _asked(self, model: Model, request: Request) -> Completion:
        """What the model answers, once it is stored."""
        start = time.monotonic()
        try:
            if reason := self.unasked and (self.unasked.get(request.key) or self.unasked.get(request.about.dialogue_id)):
                raise NoAnswer(reason)
            completion = await self.send(model, request)
            delivery = ALL_KINDS[request.about.kind].delivery
            await self.ledger.store(Entry(request.key, request.about, completion, delivery, time.monotonic() - start))
        except EmpathyEvalError as error:
            self.stopped = self.stopped or error
            raise
        return completion

    async def send(self, model: Model, request: Request) -> Completion:
        """What the model answers to a request that the ledger has no answer to."""
        return await model.complete(request)

    def _repair(self, messages: list[Message], completion: Completion, flaws: list[Flaw]) -> list[Message]:
        """The first request again with the bad answer and what is wrong with it."""
        text = completion.text[:MOST_SHOWN]
        answered = [{"role": "assistant", "content": text}] if text.strip() else []
        return [*messages, *answered, *self.prompts.render("repair", violations=[flaw.detail for flaw in flaws[:MOST_FLAWS]])]


async def judged(completion: Completion, answer_schema: str, judge: Judge[T]) -> T | list[Flaw]:
    """The value of a completion, or its flaws: of the text, of the schema, or the judge's. What a judge trips over is a flaw too.

    Raises:
        NoAnswer, EmpathyEvalError, OSError: what a judge raises that says nothing of the answer.
    """
    try:
        value, flaws = read(completion, answer_schema)
        return flaws or await judge(value)
    except (NoAnswer, EmpathyEvalError, OSError, MemoryError):
        raise
    except Exception as error:
        return [Flaw("not_judged", f"the answer could not be judged ({type(error).__name__}); write it in another way")]


async def settled(*tasks: Coroutine[Any, Any, T]) -> list[T]:
    """All results in order, after *all* tasks have ended: what was paid for is stored before an error goes on.

    Raises:
        the first error by place; one that ends the run goes before a :class:`NoAnswer`.
    """
    results = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [one for one in results if isinstance(one, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, NoAnswer)), errors[0])
    return [one for one in results if not isinstance(one, BaseException)]


Verdict = Literal["taken", "refused", "unanswered", "scored", "not judged"]
# Samples whose keys are looked through, where it is not known how many were asked for.
MOST_SAMPLES = 100
NOT_KEPT = "refused by a check of one's own, which is not run here; its words were not kept"


@dataclass(frozen=True)
class Step:
    """A request of a dry run, and its answer if the ledger has one. ``flaws`` say why the answer was refused.

    ``repair`` if it shows a bad answer and asks for a better one. ``scored`` is what the toxicity scorer was given; not judged is an answer
    whose text has no score in the ledger.
    """

    request: Request
    completion: Completion | None = None
    verdict: Verdict = "unanswered"
    flaws: tuple[Flaw, ...] = ()
    repair: bool = False

    @property
    def about(self) -> About:
        """What the request is about."""
        return self.request.about

    def keyed(self, key: str, samples: int) -> Request | None:
        """The same request as the sample that has this key, of the same candidate: a replay does not come to it where the first has no
        answer, or is taken."""
        if self.request.key == key:
            return self.request
        first = replace(self.request, sample=self.request.sample - self.request.sample % APART)
        return None if self.repair else next((one for one in samples_of(first, min(samples, MOST_SAMPLES)) if one.key == key), None)


class DryRun(Asker):
    """Sends nothing: goes as far as the ledger answers, and keeps each request with its answer, or without one.

    ``instead`` says by kind what is gone on with where the ledger has no answer.
    """

    def __init__(
        self, ledger: Ledger, models: Mapping[str, Model], prompts: Prompts, config: Asks, instead: Mapping[str, Completion] | None = None
    ) -> None:  # fmt: skip
        super().__init__(ledger, dict(models), prompts, samples=config.samples, repairs=config.repairs, offline=True)
        self._instead = instead or {}
        # By key why an answer was refused that no check finds at fault.
        self.refused: Mapping[str, tuple[str, ...]] = {}
        # All requests in the order they came, and by what they are about and their key what became of them.
        self.asked = list[Request]()
        self.steps = dict[tuple[About, str], Step]()

    async def complete(self, model: Model, request: Request, *, repair: bool = False) -> Completion:
        """The completion of a request, from the ledger or in the stead of one."""
        place = request.about, request.key
        self.asked.append(request)
        self.steps.setdefault(place, Step(request, repair=repair))
        try:
            found = await super().complete(model, request)
        except NoAnswer:
            if request.about.kind not in self._instead:
                raise
            return self._instead[request.about.kind]
        verdict: Verdict = "scored" if request.about.kind == SCORE.name else "not judged"
        self.steps[place] = replace(self.steps[place], completion=found, verdict=verdict)
        return found

    def ruled(self, request: Request, verdict: Any) -> Any:
        """The verdict, or where a check of one's own made it, that one as it was noted."""
        if not isinstance(verdict, list) and (noted := self.refused.get(request.key)):
            verdict = [Flaw(reason, NOT_KEPT) for reason in noted]
        place, flaws = (request.about, request.key), tuple(verdict) if isinstance(verdict, list) else ()
        self.steps[place] = replace(self.steps[place], verdict="refused" if flaws else "taken", flaws=flaws)
        return verdict


def samples_of(request: Request, count: int, step: int = 1) -> Iterator[Request]:
    """A request as so many samples, from its own on; their numbers lie so far apart."""
    return (replace(request, sample=request.sample + number * step) for number in range(count))


TABLE = "CREATE TABLE noted (key PRIMARY KEY, endpoint, model, dialogue_id, kind, turn, sample, body, input, output)"
IN_ORDER = """
SELECT key, dialogue_id, kind, turn, endpoint, model, body, input, output FROM noted
ORDER BY endpoint, model, dialogue_id, kind, turn, sample, key
"""


class PendingRequests:
    """The unanswered requests of a replay, each once. They lie in a temporary file: their number costs no memory."""

    def __init__(self) -> None:
        # A database without a name is a file that is gone when it is closed; SQLITE_TMPDIR says where it lies.
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute(TABLE)
        self._file.execute("BEGIN")

    def add(self, request: Request, model: str, worst: Usage) -> None:
        """Writes a request down, unless it is there already.

        Raises:
            JobError: if there is no room for it.
        """
        about, body = request.about, zlib.compress(request.content, 1)
        tokens = (worst.input_tokens, worst.output_tokens)
        row = (request.key, request.endpoint, model, about.dialogue_id, about.kind, about.turn, request.sample, body, *tokens)
        with _room():
            self._file.execute("INSERT OR IGNORE INTO noted VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM noted").fetchone()[0])

    def __iter__(self) -> Iterator[PendingRequest]:
        """The requests by endpoint, model and place in the plan: an order that no concurrency can change."""
        with _room():
            for key, dialogue_id, kind, turn, endpoint, model, body, read, written in self._file.execute(IN_ORDER):
                yield PendingRequest(key, About(dialogue_id, kind, turn), endpoint, model, zlib.decompress(body), Usage(read, 0, written))


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Turns a full disk under the temporary file into a :class:`JobError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        fix = "make room for temporary files, or name a folder for them in SQLITE_TMPDIR; then run the same command"
        raise job_error("noted requests", f"cannot be written: {error}", fix) from error


class PreviewModel(Asker):
    """Writes down what would be sent to an endpoint; models that are here answer."""

    def __init__(self, notes: PendingRequests, config: Asks, *asks: Any, **how: Any) -> None:
        super().__init__(*asks, **how)
        self._notes, self._configured = notes, config.models

    async def send(self, model: Model, request: Request) -> Completion:
        """The answer of a model that is here.

        Raises:
            NoAnswer: for any other.
        """
        config = self._configured.get(ALL_KINDS[request.about.kind].role)
        if config is None or not config.remote:
            return await super().send(model, request)
        # Before it is answered, as many tokens as bytes may be read: the worst case of a budget.
        self._notes.add(request, model.name, Usage(request.size, 0, config.max_tokens))
        raise NoAnswer(f"written down, not sent: {request.about}")
