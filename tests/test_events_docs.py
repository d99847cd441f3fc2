"""docs/events.md tells of every event, in full, and of nothing else."""

import json
import re
from pathlib import Path

import pytest

from chat.events import EVENTS, to_data
from chat.loop import notices, repair, window
from chat.types import Completion
from tests.chat.wire.samples import EACH
from web.models import OwnerEventKind

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "events.md").read_text()
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", TEXT, re.DOTALL | re.MULTILINE))


def example(name):
    [code] = re.findall(r"```json\n(.*?)\n```", SECTIONS[name], re.DOTALL)
    return json.loads(code)


def shape(value):
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else None


def test_every_event_has_a_section_and_every_section_an_event():
    assert set(SECTIONS) == set(EVENTS)


@pytest.mark.parametrize("event", EACH, ids=lambda event: event.name)
def test_example_has_exactly_the_fields_of_the_event(event):
    data = json.loads(json.dumps(to_data(event)))
    shown = example(event.name)
    if event.name == "snapshot":
        data, shown = sorted(data), sorted(shown)
    if event.name == "done":
        data["usage"] = None
    assert shape(shown) == shape(data)


def test_every_notice_of_the_loop_is_listed():
    codes = set(re.findall(r"^\| `(\w+)` \|", SECTIONS["notice"], re.MULTILINE))
    repaired = repair.Repaired((), ("missing_result_filled",))
    told = [
        notices.nudged(),
        *notices.of_history(repaired, window.Window((), dropped_turns=1)),
        *notices.of_answer(Completion(finish_reason="tool_use"), last_call=False),
        *notices.of_answer(Completion(), last_call=False),
        *notices.of_answer(Completion(), last_call=True),
        *notices.CUT.values(),
    ]
    assert codes == {notice.code for notice in told}


def test_every_kind_of_the_feed_is_listed():
    section = TEXT.partition("## Everything of yours")[2].partition("\n## ")[0]
    rows = "".join(re.findall(r"^\| (`\w+`.*?) \|", section, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows)) == {kind.value for kind in OwnerEventKind}
