from uuid import UUID

from chat import events
from chat.events import LoggedEvent
from chat.runs.hub import QUEUE_BYTES, Hub

RUN = UUID(int=1)
OTHER = UUID(int=2)


def logged(seq, text="x", run_id=RUN):
    return LoggedEvent(run_id, 1, seq, events.TextDelta(message_id=UUID(int=9), text=text))


async def test_hub_gives_events_to_every_listener_of_the_run_only():
    hub = Hub()
    with hub.subscribed(RUN) as one, hub.subscribed(RUN) as two, hub.subscribed(OTHER) as other:
        hub.publish(RUN, (logged(1), logged(2)))

        assert await one.wait(1)
        assert one.take() == two.take() == (logged(1), logged(2))
        assert not await other.wait(0.001)


async def test_hub_cuts_off_a_slow_listener_instead_of_growing():
    hub = Hub()
    with hub.subscribed(RUN) as slow:
        for seq in range(1, 100):
            hub.publish(RUN, (logged(seq, "x" * (QUEUE_BYTES // 20)),))

        assert slow.behind
        assert slow.take() == ()
        slow.caught_up()
        hub.publish(RUN, (logged(100),))
        assert slow.take() == (logged(100),)


async def test_hub_keeps_nothing_once_the_last_listener_is_gone():
    hub = Hub()
    with hub.subscribed(RUN):
        pass
    hub.publish(RUN, (logged(1),))

    assert hub.is_idle


async def test_hub_sends_a_listener_to_the_log_when_another_process_wrote():
    hub = Hub()
    with hub.subscribed(RUN) as listener:
        hub.news_in_log(RUN)

        assert await listener.wait(1)
        assert listener.behind
