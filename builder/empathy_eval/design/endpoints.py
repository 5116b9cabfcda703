"""Model configurations: how each model is called, how requests are delivered, and what an answer costs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from empathy_eval.base.errors import Problem
from empathy_eval.base.hashing import canonical_json

# How a request is delivered, as opposed to what is asked: outside a build's identity and a request's key.
DELIVERY = (
    "base_url", "api_key_env", "headers", "query", "in_flight", "requests_per_minute", "tokens_per_minute", "timeout_seconds",
    "patience_seconds", "unreachable_seconds", "batch_requests", "batch_bytes", "prices",
)  # fmt: skip
# What models on one endpoint have in common.
SHARED_DELIVERY = tuple(name for name in DELIVERY if name not in ("prices", "patience_seconds"))


@dataclass(frozen=True)
class Prices:
    """Dollars per million tokens; ``batch`` is the price of batches as a share of them."""

    input: float
    output: float
    cached_input: float | None = None
    batch: float = 1.0


@dataclass(frozen=True)
class ModelConfig:
    """One model: ``kind`` is ``seed-bank``, ``openai``, ``reward``, ``given`` (passed in from Python) or the name of a custom one.

    All but ``parameters`` is for ``openai`` and ``reward``. A given model sets ``model`` and ``endpoint`` itself; for others they are the
    kind. A reward model is called in a server ``form``; ``label`` is the class whose number counts, by name or index.
    """

    kind: str
    model: str
    endpoint: str
    max_tokens: int = 0
    max_tokens_field: str = "max_tokens"
    parameters: dict[str, Any] = field(default_factory=dict)
    structure: str = "schema"
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    form: str | None = None
    label: str | int | None = None
    prices: Prices | None = None
    in_flight: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_seconds: float = 120.0
    patience_seconds: float = 900.0
    # From the first attempt on: an endpoint to which there was no connection in all that time ends the run.
    unreachable_seconds: float = 12.0
    # What a file of requests may hold: the limits of OpenAI's batches.
    batch_requests: int = 50_000
    batch_bytes: int = 200_000_000

    @property
    def remote(self) -> bool:
        """Whether requests go to an endpoint."""
        return self.kind == "openai" or self.form is not None


class JobConfig(Protocol):
    """The settings of a job that sends requests: models by role, and how often each request is tried.

    ``active_models`` are those that get requests. ``identity`` names all that can change requests; ``published`` is shown of it.
    """

    @property
    def models(self) -> Mapping[str, ModelConfig]: ...  # noqa: D102
    @property
    def active_models(self) -> Mapping[str, ModelConfig]: ...  # noqa: D102
    @property
    def samples(self) -> int: ...  # noqa: D102
    @property
    def repairs(self) -> int: ...  # noqa: D102
    @property
    def identity(self) -> str: ...  # noqa: D102
    @property
    def published(self) -> dict[str, Any]: ...  # noqa: D102

    def mismatch(self, published: dict[str, Any]) -> str | None:
        """Why a folder of that configuration does not belong to this one; None if it does."""


def published_model(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A model as it is published: without delivery settings, and without the path of local weights."""
    published = {name: value for name, value in raw.items() if name not in DELIVERY}
    parameters = raw.get("parameters", {})
    if raw["kind"] == "transformers" and isinstance(parameters.get("model"), str) and Path(parameters["model"]).exists():
        published["parameters"] = {**parameters, "model": Path(parameters["model"]).name}
    return published


def model_of(raw: Mapping[str, Any]) -> ModelConfig:
    """A model from valid raw values."""
    prices = Prices(**raw["prices"]) if "prices" in raw else None
    return ModelConfig(**{"model": raw["kind"], "endpoint": raw["kind"], **raw, "prices": prices})


def model_faults(models: Mapping[str, ModelConfig], where: str) -> Iterator[Problem]:
    """What no schema can say of models together: addresses, two prices of one model, two deliveries of one endpoint."""
    for role, config in models.items():
        faults = url_faults(config.base_url) if config.base_url else ()
        yield from (Problem(f"{where}: {role}: base_url", what, fix) for what, fix in faults)
    for model in sorted({config.model for config in models.values()}):
        if len({config.prices for config in models.values() if config.model == model and config.prices}) > 1:
            what = f'"{model}" has two prices, and a ledger tells answers apart by the model alone'
            yield Problem(where, what, "give it one price, the higher one, everywhere")
    for label in sorted({config.endpoint for config in models.values()}):
        sharing = [config for config in models.values() if config.endpoint == label]
        deliveries = {canonical_json([getattr(config, name) for name in SHARED_DELIVERY]) for config in sharing}
        if len(deliveries) > 1:
            what = f'the models on endpoint "{label}" are delivered in different ways'
            yield Problem(where, what, f"give them the same {', '.join(SHARED_DELIVERY)}, or labels of their own")


def url_faults(url: str) -> Iterator[tuple[str, str]]:
    """(what, fix) of an address that is invalid, or that would store a secret; the address itself is not shown."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:
        yield f"is not an address: {error}", "write http://… or https://…"
        return
    if re.search(r"[^!-~]", url):
        yield "holds a blank or a character that an address cannot contain", "write http://HOST:PORT/v1 or https://HOST/v1"
    elif parts.username is not None or parts.password is not None:
        yield "holds credentials", "take them out of the address; api_key_env or headers name the variable that holds them"
    elif parts.query or parts.fragment:
        yield "holds more than a path", "write what follows the ? under query"
    elif not whole:
        yield "names no host or no port, or does not begin with http:// or https://", "write http://HOST:PORT/v1 or https://HOST/v1"
