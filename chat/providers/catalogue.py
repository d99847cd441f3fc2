"""Which vendors are configured, which models they have, and which one a reference means.

One row of ``PROVIDERS`` per vendor, in the order in which the first configured one is chosen. What
differs on the wire is the row's ``quirks``; everything else is configuration from the environment.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from chat.exceptions import ChatError, ModelUnknownError, NoProviderError, ProviderError
from chat.providers import demo
from chat.providers.base import Provider
from chat.providers.http import Client, Endpoint, Upstream
from chat.providers.openai import OpenAIProvider
from chat.providers.openai_request import Option, Quirks

_LIST_SECONDS = 300.0
_LIST_PATIENCE = 5.0
_MOST_MODELS = 2000

#: What a server that keeps no list is asked for: those serve one model under any name.
ANY_MODEL = "default"

#: Models that no one can talk to. They stay usable for whoever names them.
_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|image|moderation|transcribe|realtime|rerank|sora|davinci|babbage"
    r"|audio|guard|ocr|imagen|veo|\baqa\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A vendor. ``url_variable`` is set where the operator may say where it listens."""

    name: str
    label: str
    key_variable: str = ""
    url_variable: str = ""
    default_url: str = ""
    local: bool = False
    quirks: Quirks = Quirks()

    def endpoint(self) -> Endpoint | None:
        """Where it is, if the operator has configured it."""
        key = getattr(settings, self.key_variable) if self.key_variable else ""
        url = getattr(settings, self.url_variable) if self.url_variable else ""
        if not key and not url:
            return None
        label = "OpenAI-compatible server" if url and self.default_url else self.label
        url = (url or self.default_url).rstrip("/")
        if self.local and not url.partition("://")[2].partition("/")[2]:
            url += "/v1"  # Their own tools name the server without it.
        return Endpoint(
            name=self.name,
            label=label,
            base_url=url,
            key=key,
            key_variable=self.key_variable,
            url_variable=self.url_variable,
            local=self.local or _is_near(url),
        )

    @property
    def variables(self) -> str:
        return " or ".join(filter(None, (self.key_variable, self.url_variable)))


def _is_near(url: str) -> bool:
    """Whether a server stands in the house, where a model may first have to be loaded."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".localhost"))


def _options(*replayed: Option) -> frozenset[Option]:
    return Quirks().options | frozenset(replayed)


PROVIDERS: tuple[ProviderRow, ...] = (
    ProviderRow(
        "openai", "OpenAI", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"
    ),
    ProviderRow(
        "openrouter",
        "OpenRouter",
        "OPENROUTER_API_KEY",
        default_url="https://openrouter.ai/api/v1",
        quirks=Quirks(options=_options("reasoning_details")),
    ),
    ProviderRow("venice", "Venice", "VENICE_API_KEY", default_url="https://api.venice.ai/api/v1"),
    ProviderRow("groq", "Groq", "GROQ_API_KEY", default_url="https://api.groq.com/openai/v1"),
    ProviderRow(
        "mistral",
        "Mistral",
        "MISTRAL_API_KEY",
        default_url="https://api.mistral.ai/v1",
        quirks=Quirks(
            options=_options() - {"stream_options"}, short_call_ids=True, plain_schemas=True
        ),
    ),
    ProviderRow(
        "deepseek",
        "DeepSeek",
        "DEEPSEEK_API_KEY",
        default_url="https://api.deepseek.com",
        quirks=Quirks(options=_options("reasoning_content")),
    ),
    ProviderRow(
        "gemini",
        "Gemini",
        "GEMINI_API_KEY",
        default_url="https://generativelanguage.googleapis.com/v1beta/openai",
        quirks=Quirks(options=_options("extra_content"), plain_schemas=True),
    ),
    ProviderRow("ollama", "Ollama", url_variable="OLLAMA_BASE_URL", local=True),
    ProviderRow("lmstudio", "LM Studio", url_variable="LMSTUDIO_BASE_URL", local=True),
    ProviderRow("llamacpp", "llama.cpp", url_variable="LLAMACPP_BASE_URL", local=True),
)

_ROWS = {row.name: row for row in PROVIDERS}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that can be asked for. None: the vendor does not say."""

    provider: str
    label: str
    model: str
    tools: bool | None = None
    context_length: int | None = None

    @property
    def reference(self) -> str:
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class Listing:
    """All models of all vendors, and why some vendor's are missing, by its name.

    ``default`` answers where no model is named; None where that cannot be told.
    """

    models: tuple[ModelInfo, ...]
    problems: Mapping[str, str]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    provider: Provider
    model: str


def configured() -> tuple[Endpoint, ...]:
    """The vendors that the environment names, the first choice first."""
    return tuple(endpoint for row in PROVIDERS if (endpoint := row.endpoint()))


def chosen(reference: str) -> tuple[Endpoint | None, str]:
    """Whom a reference means, and which model of theirs ("": the first); None is the demo.

    What the environment says is enough to tell; whether they have the model, they know.
    """
    endpoints = configured()
    if not reference and endpoints:
        return endpoints[0], ""
    prefix, _, model = reference.partition("/")
    if prefix == demo.NAME or not reference:
        if not settings.NOTEWIRE_DEMO:
            raise NoProviderError(NOT_CONNECTED)
        return None, demo.NAME
    named = {endpoint.name: endpoint for endpoint in endpoints}
    if prefix in named and model:
        return named[prefix], model
    if prefix in _ROWS and model:
        row = _ROWS[prefix]
        raise NoProviderError(f"{row.label} is not configured: set {row.variables}.")
    if not endpoints and settings.NOTEWIRE_DEMO:
        raise ModelUnknownError(f"There is no model {reference!r}: the demo alone is here.")
    if not endpoints:
        raise NoProviderError(f"No provider is configured that could have {reference!r}.")
    if prefix in named:
        raise ModelUnknownError(f"{reference!r} names a provider but no model of it.")
    return endpoints[0], reference


NOT_CONNECTED = (
    "No model is connected. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that "
    "speaks OpenAI's API, and start Notewire again."
)


class Catalogue:
    """The vendors of one process, over its shared client."""

    def __init__(self, client: Client, *, demo_pace: float = demo.PACE) -> None:
        self._client = client
        self._demo = demo.DemoProvider(pace=demo_pace)
        self._providers: dict[Endpoint, OpenAIProvider] = {}
        self._lists: dict[Endpoint, tuple[float, tuple[ModelInfo, ...]]] = {}

    async def resolve(self, reference: str | None = None) -> ResolvedModel:
        """Who answers for ``provider/model-id``, for a bare model id, or when nobody is named."""
        reference = (reference or "").strip() or settings.NOTEWIRE_DEFAULT_MODEL
        endpoint, model = chosen(reference)
        if endpoint is None:
            return ResolvedModel(self._demo, demo.NAME)
        return ResolvedModel(self._provider(endpoint), model or await self._first(endpoint))

    async def models(self) -> Listing:
        """What can be chosen now; a vendor that does not answer is a problem, no failure."""
        endpoints = configured()
        lists = await asyncio.gather(*map(self._listed_or_problem, endpoints))
        models: list[ModelInfo] = []
        problems: dict[str, str] = {}
        for endpoint, found in zip(endpoints, lists, strict=True):
            if isinstance(found, ChatError):
                problems[endpoint.name] = str(found)
            else:
                models += found
        if settings.NOTEWIRE_DEMO:
            models.append(ModelInfo(demo.NAME, "Demo", demo.NAME, tools=True))
        first = endpoints[0].name if endpoints else demo.NAME
        default = next((each.reference for each in models if each.provider == first), None)
        named = settings.NOTEWIRE_DEFAULT_MODEL
        return Listing(tuple(models), problems, named or default)

    async def _first(self, endpoint: Endpoint) -> str:
        try:
            models = await self._listed(endpoint)
        except ProviderError as error:
            if not _keeps_no_list(error) and error.fault.type != "not_an_api":
                raise
            models = ()
        return models[0].model if models else ANY_MODEL

    async def _listed_or_problem(self, endpoint: Endpoint) -> tuple[ModelInfo, ...] | ChatError:
        try:
            models = await self._listed(endpoint)
        except ProviderError as error:
            if not _keeps_no_list(error):
                return error
            models = ()
        return models or (ModelInfo(endpoint.name, endpoint.label, ANY_MODEL),)

    async def _listed(self, endpoint: Endpoint) -> tuple[ModelInfo, ...]:
        known = self._lists.get(endpoint)
        if known is not None and time.monotonic() - known[0] < _LIST_SECONDS:
            return known[1]
        upstream = Upstream(self._client, endpoint)
        models = _models_in(await upstream.get_json("/models", patience=_LIST_PATIENCE), endpoint)
        if models:
            self._lists[endpoint] = (time.monotonic(), models)
        return models

    def _provider(self, endpoint: Endpoint) -> OpenAIProvider:
        if endpoint not in self._providers:
            upstream = Upstream(self._client, endpoint)
            row = _ROWS[endpoint.name]
            # Vendors' own servers send thinking apart; what an operator runs may not.
            own = endpoint.base_url != row.default_url
            quirks = replace(row.quirks, think_tags=own)
            self._providers[endpoint] = OpenAIProvider(upstream, quirks=quirks)
        return self._providers[endpoint]


def _keeps_no_list(error: ProviderError) -> bool:
    return error.fault.status in (404, 405) and error.fault.type != "not_an_api"


def _models_in(answer: Any, endpoint: Endpoint) -> tuple[ModelInfo, ...]:
    """The models of ``GET /models``: under ``data``, or the array itself; only ids are sure."""
    rows = answer.get("data") if isinstance(answer, dict) else answer
    models: dict[str, ModelInfo] = {}
    for row in rows[:_MOST_MODELS] if isinstance(rows, list) else ():
        name = row.get("id") if isinstance(row, dict) else None
        if not isinstance(name, str) or not name or _NO_CHAT.search(name):
            continue
        name = name.removeprefix("models/")
        models.setdefault(
            name,
            ModelInfo(endpoint.name, endpoint.label, name, _takes_tools(row), _context(row)),
        )
    return tuple(models.values())


def _takes_tools(row: Mapping[str, Any]) -> bool | None:
    """Told by OpenRouter and Mistral; others say nothing."""
    parameters, capabilities = row.get("supported_parameters"), row.get("capabilities")
    if isinstance(parameters, list):
        return "tools" in parameters
    told = capabilities.get("function_calling") if isinstance(capabilities, dict) else None
    return told if isinstance(told, bool) else None


def _context(row: Mapping[str, Any]) -> int | None:
    names = ("context_length", "max_context_length", "context_window", "max_model_len")
    lengths = (row.get(name) for name in names)
    return next((n for n in lengths if isinstance(n, int) and 0 < n < 2**31), None)
