"""What an endpoint means when it does not answer: come back later, not this request, or not at all."""

from __future__ import annotations

import json
import re
from typing import Any

import openai

from empathy_eval.base.errors import EmpathyEvalError, job_error
from empathy_eval.completions.models.chat_completion import said
from empathy_eval.completions.models.protocol import NoAnswer
from empathy_eval.completions.models.rate_limit import seconds
from empathy_eval.completions.models.transport import masked, masked_value
from empathy_eval.design.endpoints import ModelConfig

QUOTA = re.compile(
    r"insufficient_quota|billing_hard_limit_reached|insufficient_balance|budget.{0,40}exceed|exceed.{0,40}budget", re.IGNORECASE
)
NO_MODEL = re.compile(
    r"model_not_found|(?:invalid|unknown) model|model .{0,200}(?:not found|not exist|not supported|unknown)", re.IGNORECASE
)
LATER, CONGESTED = (408, 409, 425, 429), (408, 429, 504)
# Bytes of a refusal that are looked at for its words.
MOST_WORDS = 8192


class Refused(Exception):
    """The endpoint gave no answer this time; ``wait`` seconds if it said how long, ``known`` if it surely did not work on it.

    ``pace`` if it is asked too much at once, ``failing`` if it answered and what it said was an error of its own.
    """

    def __init__(
        self, reason: str, wait: float | None = None, *, pace: bool = False, known: bool = True, failing: bool = False
    ) -> None:  # fmt: skip
        super().__init__(reason)
        self.wait, self.pace, self.known, self.failing = wait, pace, known, failing


def meaning(error: openai.APIStatusError, config: ModelConfig) -> Refused | NoAnswer | EmpathyEvalError:
    """What a status means: come back later, not this request, or not at all."""
    status, key = error.status_code, config.api_key_env
    words = words_of(error.response, config)
    shown = f"{status}: {words}" if words else str(status)
    if status == 402 or (400 <= status < 500 and QUOTA.search(words)):
        return giving_up(config, f"the quota is used up ({shown})", "add to the account's balance")
    if status == 401:
        return giving_up(config, f"the endpoint refuses the key in {key} ({shown})", f"set {key}")
    if status == 403:
        return giving_up(config, f"the key in {key} may not do this ({shown})", "give it access, or use another key")
    if status == 404 or (status in (400, 422) and NO_MODEL.search(words)):
        return giving_up(
            config, f'the endpoint does not have this ({shown}), model "{config.model}"', "correct the model's name or base_url"
        )
    if status < 400:
        where = said(masked(error.response.headers.get("location", "").partition("?")[0], config))
        return Refused(f'{shown}: sends requests on to "{where}", which base_url could name', failing=True)
    if status in LATER or status >= 500:
        wait = seconds(error.response.headers.get("retry-after"))
        return Refused(shown, wait, pace=status in CONGESTED, failing=status >= 500)
    return NoAnswer(f"refused with {shown}")


def giving_up(config: ModelConfig, what: str, how: str) -> EmpathyEvalError:
    """The error that ends a run whose endpoint takes nothing."""
    return job_error(f"models: {config.model}", what, f"{how}, then run the same command to continue; every answer is in the ledger")


def words_of(response: Any, config: ModelConfig) -> str:
    """The server's own words in the body of a response, in one short line without secrets; never a header, so never a key."""
    text = masked(response.content[:MOST_WORDS].decode("utf-8", "replace"), config)
    try:
        return said(masked_value(json.loads(text), config))
    except (ValueError, RecursionError):
        return said(re.sub(r"<[^<>]{0,200}>", " ", text))
