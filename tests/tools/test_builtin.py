import json
import math
from datetime import datetime, timedelta

import pytest

from tools.definitions import ToolContext
from tools.invocation import invoke
from tools.policy import Policy


async def current_time(arguments: str):
    context = ToolContext(user_id=1, deadline=math.inf)
    return await invoke(name="current_time", arguments=arguments, context=context, policy=Policy())


async def test_current_time_is_in_utc_when_nothing_is_asked():
    found = json.loads((await current_time("")).content)
    moment = datetime.fromisoformat(found["time"])
    assert abs(datetime.now(moment.tzinfo) - moment) < timedelta(seconds=60)
    assert (found["timezone"], moment.utcoffset()) == ("UTC", timedelta(0))
    assert found["weekday"] == moment.strftime("%A")


async def test_current_time_is_in_the_zone_that_was_asked_for():
    found = json.loads((await current_time('{"timezone": "Asia/Kolkata"}')).content)
    offset = datetime.fromisoformat(found["time"]).utcoffset()
    assert offset == timedelta(hours=5, minutes=30)


@pytest.mark.parametrize(
    "zone", ["Nowhere/Land", "", "../../etc/passwd", "/etc", "Europe", "a" * 5000]
)
async def test_current_time_says_what_a_zone_is_when_it_knows_none(zone):
    outcome = await current_time(json.dumps({"timezone": zone}))
    assert "is not a time zone" in outcome.content
    assert (outcome.status, outcome.is_error) == ("error", True)
