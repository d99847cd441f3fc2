"""Hears from PostgreSQL which runs, conversations and people have news that others wrote.

Owns one connection that listens; when it is lost it is made again and everybody looks into the log,
since notifications of the gap are gone.
"""

from __future__ import annotations

import asyncio
import logging

import psycopg
from procrastinate.contrib.django.utils import connector_params

from chat.runs import event_log
from chat.runs.hub import Hub
from web import feed

logger = logging.getLogger(__name__)

RECONNECT_SECONDS = 1.0


class Notifications:
    def __init__(self, *, hub: Hub, origin: str) -> None:
        self._hub = hub
        self._origin = origin

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                await self._listen()
            except psycopg.Error as error:
                logger.warning("The notification connection was lost: %s", error)
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        connection = await psycopg.AsyncConnection.connect(**connector_params(), autocommit=True)
        async with connection:
            for channel in (event_log.CHANNEL, feed.CHANNEL):
                await connection.execute(f"LISTEN {channel}")
            self._hub.news_anywhere()
            async for notification in connection.notifies():
                self._hear(notification.channel, notification.payload)

    def _hear(self, channel: str, payload: str) -> None:
        if channel == feed.CHANNEL:
            self._hub.news_in_log(int(payload))
            return
        origin, topics = event_log.notification_parse(payload)
        if origin != self._origin:
            for topic in topics:
                self._hub.news_in_log(topic)
