"""Token counts of OpenAI-style vendors to disjoint buckets."""

from __future__ import annotations

from typing import Any

from chat.types import Usage

_LARGEST_COUNT = 2**31 - 1


def usage_of(usage: Any) -> Usage | None:
    """Disjoint buckets of a usage object, whose prompt tokens include the cached ones."""
    if not isinstance(usage, dict) or not ({"prompt_tokens", "completion_tokens"} & usage.keys()):
        return None
    prompt, output = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    prompt = prompt if isinstance(prompt, dict) else {}
    output = output if isinstance(output, dict) else {}
    read = _count(prompt.get("cached_tokens")) or _count(usage.get("prompt_cache_hit_tokens"))
    write = _count(prompt.get("cache_write_tokens"))
    reasoning = output.get("reasoning_tokens")
    return Usage(
        fresh_input=max(_count(usage.get("prompt_tokens")) - read - write, 0),
        cache_read=read,
        cache_write=write,
        output=_count(usage.get("completion_tokens")),
        reasoning=None if reasoning is None else _count(reasoning),
    )


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return 0
    return int(min(value, _LARGEST_COUNT))
