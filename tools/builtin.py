"""Tools that need none of the apps."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from tools.definitions import ToolContext
from tools.exceptions import ToolError
from tools.registry import tool


@tool(effect="read", repeatable=True)
async def current_time(
    context: ToolContext,
    timezone: Annotated[
        str, Field(description="A name of the IANA time zone database, as Europe/Berlin.")
    ] = "UTC",
) -> dict[str, object]:
    """Tell the present date and time, with the day of the week, in a time zone."""
    try:
        now = datetime.now(ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ToolError(
            f"{timezone[:100]!r} is not a time zone. Use a name such as Europe/Berlin or UTC."
        ) from error
    return {
        "time": now.isoformat(timespec="seconds"),
        "weekday": now.strftime("%A"),
        "timezone": timezone,
    }
