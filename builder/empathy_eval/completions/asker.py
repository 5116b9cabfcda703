"""The asker: answers requests from the ledger, else from a model; one repair for each sample, then the next sample."""

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
from empathy_eval.completions.ledger import Ledger, LedgerEntry, PendingRequest
from empathy_eval.completions.requests import About, Completion, Failure, Flaw, Model, NoAnswer, Request, Usage, read_answer
from empathy_eval.design.configuration import SAMPLES_PER_CANDIDATE
from empathy_eval.design.endpoints import JobConfig
from empathy_eval.design.kinds import ALL_KINDS, SCORE
from empathy_eval.design.prompts import Message, Prompts

T = TypeVar("T")
# What a repair request shows of a bad answer: so many characters, so many flaws.
MAX_SHOWN, MAX_FLAWS = 20_000, 100
# Judges the parsed answer: the value it stands for, or the flaws that keep it from being taken.
Judge = Callable[[Any], Awaitable[T | list[Flaw]]]
Verdict = Literal["taken", "refused", "unanswered", "scored", "not judged"]
# Samples whose keys are looked through, where it is not known how many were asked for.
MAX_SAMPLES = 100
REFUSED_BY_CUSTOM_CHECK = "refused by a check of one's own, which is not run here; its words were not kept"
TABLE = "CREATE TABLE noted (key PRIMARY KEY, endpoint, model, dialogue_id, kind, turn, sample, body, input, output)"
IN_ORDER = """
SELECT key, dialogue_id, kind, turn, endpoint, model, body, input, output FROM noted
ORDER BY endpoint, model, dialogue_id, kind, turn, sample, key
"""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """An accepted sample and its source."""

    value: T
    model: str
    request_key: str


@dataclass
class Trail:
    """What asking leaves behind: refused samples, and the ledger rows that were used."""

    failures: list[tuple[int, Failure]] = field(default_factory=list)
    usage: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    keys: set[str] = field(default_factory=set)

    def record_use(self, key: str, completion: Completion) -> None:
        """Counts a ledger row that the replay of this item used, once."""
        if key not in self.keys:
            self.keys.add(key)
            self.usage[completion.model].update({"requests": 1, **vars(completion.usage)})

    def record_failure(self, request: Request, attempt: int, flaws: Sequence[Flaw], final: bool) -> None:
        """Records a refused sample with its reasons (each once)."""
        reasons = tuple(sorted({flaw.reason for flaw in flaws}))
        self.failures.append((attempt, Failure(request.about.kind, request.about.turn, reasons, request.key, final)))

    def sorted_failures(self) -> tuple[Failure, ...]:
        """The failures by turn, kind, attempt and request: an order independent of concurrency."""

        def order(row: tuple[int, Failure]) -> tuple[int, str, int, str]:
            attempt, failure = row
            return -1 if failure.turn is None else failure.turn, failure.kind, attempt, failure.request_key or ""

        return tuple(failure for _, failure in sorted(self.failures, key=order))

    def plain_usage(self) -> dict[str, dict[str, int]]:
        """The usage by model, sorted."""
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
        self.skip_reasons: Mapping[str, str] = {}
        # Set once going on makes no sense: nothing more is sent then, and what is under way is still stored.
        self.stopped: EmpathyEvalError | None = None
        # Requests to models that are answered, those among them that the ledger answered, and answers that were not taken.
        self.tally: Counter[str] = Counter()
        # By key what was sent and is not stored yet: who asks the very same meanwhile waits for that answer.
        self._under_way: dict[str, asyncio.Task[Completion]] = {}

    async def ask(
        self, about: About, messages: list[Message], judge: Judge[T], trail: Trail, first: int = 0, role: str = ""
    ) -> Answer[T] | None:
        """The first accepted sample, or None when samples are used up; every refused sample is in the trail.

        Samples are numbered from ``first``: asking again for the same thing needs unused numbers. Where several models answer one kind,
        ``role`` names the model.

        Raises:
            NoAnswer: if a request was not answered, or is not in the ledger of an offline build.
        """
        kind = ALL_KINDS[about.kind]
        model = self.models[role or kind.role]
        attempts = self.samples * (1 + self.repairs)
        attempt = 0
        for sample in range(first, first + self.samples):
            sent = messages
            for _ in range(1 + self.repairs):
                request = Request(model.body(sent, kind.answer), model.endpoint, about, sample)
                completion = await self.complete(model, request, repair=sent is not messages)
                self.tally["answered"] += request.key not in trail.keys
                trail.record_use(request.key, completion)
                verdict = self.final_verdict(request, await evaluate_answer(completion, kind.answer, judge))
                if not isinstance(verdict, list):
                    return Answer(verdict, completion.model, request.key)
                attempt += 1
                self.tally["refused"] += 1
                trail.record_failure(request, attempt, verdict, final=attempt == attempts)
                sent = self._repair(messages, completion, verdict)
        return None

    def final_verdict(self, request: Request, verdict: T | list[Flaw]) -> T | list[Flaw]:
        """Hook: called with each verdict; a replay overrides it."""
        return verdict

    async def complete(self, model: Model, request: Request, *, repair: bool = False) -> Completion:
        """The completion of a request: from the ledger, or from the model and stored before use. Equal requests are sent once.

        A ``repair`` shows a bad answer and asks for a better one.
        """
        stored = self.ledger.get(request.key)
        if stored is not None:
            self.tally["replayed"] += ALL_KINDS[request.about.kind].delivery == "live"
            return stored
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
        """The model's answer, once it is stored."""
        start = time.monotonic()
        try:
            if reason := self.skip_reasons and (self.skip_reasons.get(request.key) or self.skip_reasons.get(request.about.dialogue_id)):
                raise NoAnswer(reason)
            completion = await self.send(model, request)
            delivery = ALL_KINDS[request.about.kind].delivery
            await self.ledger.store(LedgerEntry(request.key, request.about, completion, delivery, time.monotonic() - start))
        except EmpathyEvalError as error:
            self.stop(error)
            raise
        return completion

    def stop(self, error: EmpathyEvalError) -> None:
        """Sends nothing more, for the first such error."""
        self.stopped = self.stopped or error

    async def send(self, model: Model, request: Request) -> Completion:
        """The model's answer to a request that the ledger cannot answer."""
        return await model.complete(request)

    def _repair(self, messages: list[Message], completion: Completion, flaws: list[Flaw]) -> list[Message]:
        """The first request, followed by the bad answer and its flaws."""
        text = completion.text[:MAX_SHOWN]
        answered = [{"role": "assistant", "content": text}] if text.strip() else []
        return [*messages, *answered, *self.prompts.render("repair", violations=[flaw.detail for flaw in flaws[:MAX_FLAWS]])]


async def evaluate_answer(completion: Completion, answer_schema: str, judge: Judge[T]) -> T | list[Flaw]:
    """The value of a completion, or its flaws: of the text, the schema or the judge. A crash of the judge is a flaw too.

    Raises:
        NoAnswer, EmpathyEvalError, OSError: from the judge, if they say nothing about the answer.
    """
    try:
        value, flaws = read_answer(completion, answer_schema)
        return flaws or await judge(value)
    except (NoAnswer, EmpathyEvalError, OSError, MemoryError):
        raise
    except Exception as error:
        return [Flaw("not_judged", f"the answer could not be judged ({type(error).__name__}); write it in another way")]


async def gather_all(*tasks: Coroutine[Any, Any, T]) -> list[T]:
    """All results in order, after *all* tasks have ended, so that paid answers are stored before an error is raised.

    Raises:
        BaseException: the first error by index; one that ends the run comes before a :class:`NoAnswer`.
    """
    results = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, NoAnswer)), errors[0])
    return [result for result in results if not isinstance(result, BaseException)]


@dataclass(frozen=True)
class Step:
    """A request of a dry run, with its answer if the ledger has one. ``flaws`` say why the answer was refused.

    A ``repair`` shows a bad answer and asks for a better one. ``scored`` is an input of the toxicity scorer; ``not judged`` is an answer
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

    def with_key(self, key: str, samples: int) -> Request | None:
        """The same request as the sample with this key, of the same candidate. A replay does not reach it if the first sample is accepted
        or unanswered.
        """
        if self.request.key == key:
            return self.request
        first = replace(self.request, sample=self.request.sample - self.request.sample % SAMPLES_PER_CANDIDATE)
        return None if self.repair else next((sample for sample in samples_of(first, min(samples, MAX_SAMPLES)) if sample.key == key), None)


class DryRun(Asker):
    """Sends nothing: goes as far as the ledger answers, and keeps each request with its answer, if any.

    ``instead`` gives by kind the completion to go on with where the ledger has none.
    """

    def __init__(
        self, ledger: Ledger, models: Mapping[str, Model], prompts: Prompts, config: JobConfig,
        instead: Mapping[str, Completion] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(ledger, dict(models), prompts, samples=config.samples, repairs=config.repairs, offline=True)
        self._instead = instead or {}
        # By key why an answer was refused that no check finds at fault.
        self.refused: Mapping[str, tuple[str, ...]] = {}
        # All requests in the order they came, and by what they are about and their key what became of them.
        self.asked = list[Request]()
        self.steps = dict[tuple[About, str], Step]()

    async def complete(self, model: Model, request: Request, *, repair: bool = False) -> Completion:
        """The completion of a request, from the ledger or its substitute."""
        step_key = request.about, request.key
        self.asked.append(request)
        self.steps.setdefault(step_key, Step(request, repair=repair))
        try:
            completion = await super().complete(model, request)
        except NoAnswer:
            if request.about.kind not in self._instead:
                raise
            return self._instead[request.about.kind]
        verdict: Verdict = "scored" if request.about.kind == SCORE.name else "not judged"
        self.steps[step_key] = replace(self.steps[step_key], completion=completion, verdict=verdict)
        return completion

    def final_verdict(self, request: Request, verdict: Any) -> Any:
        """The verdict; a recorded refusal by a custom check replaces it."""
        if not isinstance(verdict, list) and (noted := self.refused.get(request.key)):
            verdict = [Flaw(reason, REFUSED_BY_CUSTOM_CHECK) for reason in noted]
        step_key, flaws = (request.about, request.key), tuple(verdict) if isinstance(verdict, list) else ()
        self.steps[step_key] = replace(self.steps[step_key], verdict="refused" if flaws else "taken", flaws=flaws)
        return verdict


def samples_of(request: Request, count: int, step: int = 1) -> Iterator[Request]:
    """A request as ``count`` samples, from its own on, with numbers ``step`` apart."""
    return (replace(request, sample=request.sample + number * step) for number in range(count))


class PendingRequests:
    """The unanswered requests of a replay, each once, in a temporary file, so that they take no memory."""

    def __init__(self) -> None:
        # A database without a name is a file that is gone when it is closed; SQLITE_TMPDIR says where it lies.
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute(TABLE)
        self._file.execute("BEGIN")

    def add(self, request: Request, model: str, worst: Usage) -> None:
        """Writes a request down, unless it is there already.

        Raises:
            JobError: if the disk is full.
        """
        about, body = request.about, zlib.compress(request.content, 1)
        tokens = (worst.input_tokens, worst.output_tokens)
        row = (request.key, request.endpoint, model, about.dialogue_id, about.kind, about.turn, request.sample, body, *tokens)
        with _room():
            self._file.execute("INSERT OR IGNORE INTO noted VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM noted").fetchone()[0])

    def __iter__(self) -> Iterator[PendingRequest]:
        """The requests by endpoint, model and place in the plan: an order independent of concurrency."""
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
    """Writes down what would be sent to an endpoint; local models answer."""

    def __init__(self, notes: PendingRequests, config: JobConfig, *asks: Any, **how: Any) -> None:
        super().__init__(*asks, **how)
        self._notes, self._configured = notes, config.models

    async def send(self, model: Model, request: Request) -> Completion:
        """The answer of a local model.

        Raises:
            NoAnswer: for any other model.
        """
        config = next((self._configured.get(role) for role, known in self.models.items() if known is model), None)
        if config is None or not config.remote:
            return await super().send(model, request)
        # Before it is answered, as many tokens as bytes may be read: the worst case of a budget.
        self._notes.add(request, model.name, Usage(request.size, 0, config.max_tokens))
        raise NoAnswer(f"written down, not sent: {request.about}")
