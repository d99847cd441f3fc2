"""Which tools there are: ``@tool`` puts a function into ``registry``.

Apps register into it from their ``tools`` module, which ``apps`` discovers at start-up; nothing
here knows any of them. Whether and how a tool runs belongs to ``policy`` and ``invocation``.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tools.definitions import Effect, Preview, ToolSpec
from tools.exceptions import AlreadyRegistered
from tools.signature import Signature

if TYPE_CHECKING:
    from tools.policy import Policy

F = TypeVar("F", bound=Callable[..., object])

#: Providers refuse requests with more.
MAX_DEFINITIONS = 128

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A registered function. ``repeatable``: running it once more after a crash does no harm.

    ``preview`` takes what the function takes and changes nothing.
    """

    spec: ToolSpec
    effect: Effect
    implementation: Callable[..., Any]
    signature: Signature
    origin: str
    preview: Callable[..., Preview] | None = None
    repeatable: bool = False
    deadline: float = 30.0

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def source(self) -> str:
        """Which code it is, wherever that is installed."""
        return self.origin.partition(" ")[0]


class Registry:
    def __init__(self) -> None:
        # autodiscover_modules saves and restores this attribute by its name.
        self._registry: dict[str, Tool] = {}

    def register(self, tool: Tool) -> None:
        if (present := self._registry.get(tool.name)) is not None:
            raise AlreadyRegistered(
                f"Two tools are named {tool.name!r}: {present.origin} and {tool.origin}."
            )
        self._registry[tool.name] = tool

    def get(self, name: str) -> Tool | None:
        return self._registry.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._registry))

    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._registry[name] for name in self.names())

    @property
    def has_tools(self) -> bool:
        return bool(self._registry)

    def definitions(self, policy: Policy | None = None) -> tuple[ToolSpec, ...]:
        """What a model is told: every tool, but for those that ``policy`` switches off."""
        specs = tuple(
            tool.spec
            for tool in self.tools()
            if policy is None or policy.decide(tool.name, tool.effect).decision != "off"
        )
        if len(specs) > MAX_DEFINITIONS:
            left_out = [spec.name for spec in specs[MAX_DEFINITIONS:]]
            logger.warning("More than %s tools; left out: %s", MAX_DEFINITIONS, left_out)
        return specs[:MAX_DEFINITIONS]

    @contextmanager
    def temporarily(self, *tools: Tool, alone: bool = False) -> Iterator[Registry]:
        """For tests: what is registered inside is gone afterwards. ``alone``: start empty."""
        before = self._registry
        self._registry = {} if alone else dict(before)
        try:
            for item in tools:
                self.register(item)
            yield self
        finally:
            self._registry = before


registry = Registry()


def tool(
    *,
    effect: Effect,
    preview: Callable[..., Preview] | None = None,
    repeatable: bool = False,
    deadline: float = 30.0,
) -> Callable[[F], F]:
    """Register a function as a tool: its name, docstring and signature are what a model is told.

    The function takes a ``ToolContext`` first and returns ``str``, ``dict`` or ``ToolOutput``.
    It is synchronous (and runs in a thread) or a coroutine function.
    """

    def register(function: F) -> F:
        signature = Signature(function)
        spec = ToolSpec(
            name=function.__name__,
            description=inspect.getdoc(function) or "",
            parameters=signature.schema(),
        )
        registry.register(
            Tool(
                spec=spec,
                effect=effect,
                implementation=function,
                signature=signature,
                origin=_origin(function),
                preview=preview,
                repeatable=repeatable,
                deadline=deadline,
            )
        )
        return function

    return register


def _origin(function: Callable[..., object]) -> str:
    code = inspect.unwrap(function).__code__
    return (
        f"{function.__module__}.{function.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    )
