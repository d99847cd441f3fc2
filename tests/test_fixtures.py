"""The fixtures keep their word: units of work see the test's rows and leave none behind."""

from django.contrib.auth import get_user_model

from tools.threads import tool_thread, unit_of_work


def _make(name: str) -> int:
    get_user_model().objects.create_user(name)
    return get_user_model().objects.count()


async def test_units_share_the_connection_of_the_test(user, units):
    assert await unit_of_work(_make, "eve") == 2
    assert await tool_thread(get_user_model().objects.count) == 2


async def test_units_are_rolled_back_after_the_test(units):
    assert await unit_of_work(get_user_model().objects.count) == 0
