"""Keeps a procrastinate worker alive on this event loop, and takes up runs that others lost.

Owns the worker's restarts, its shutdown in order, and the look for jobs whose worker died (by
heartbeat). What a job does is in ``jobs``; what is swept up without a worker is the ``sweeper``'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from asgiref.sync import SyncToAsync
from django.db import close_old_connections
from procrastinate import jobs as procrastinate_jobs
from procrastinate.app import App
from procrastinate.contrib.django import app as django_app
from procrastinate.contrib.django.utils import connector_params
from procrastinate.psycopg_connector import PsycopgConnector
from procrastinate.worker import Worker

from chat.runs import heartbeats
from chat.runs.claims import ClaimedJobs

if TYPE_CHECKING:
    from chat.runs.runtime import Runtime

logger = logging.getLogger(__name__)

CONCURRENCY = 1_000
HEARTBEAT_SECONDS = 5.0
SWEEP_SECONDS = 2.0
#: How soon a worker that has just begun is noticed.
NOTICE_SECONDS = 0.2
GRACE_SECONDS = 5.0
RESTART_SECONDS = 1.0


class Supervisor:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._stopping = asyncio.Event()
        self._worker: Worker | None = None
        #: Something failed, the database by all likelihood: nobody can have said that they live.
        self._was_disturbed = False
        self.state = "starting"

    def stop(self) -> None:
        """Fetch no more jobs; running ones get their grace, then are handed back."""
        self.state = "draining"
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    async def run(self) -> None:
        """Until ``stop``: a worker that returns or fails is started again a second later."""
        watching = asyncio.create_task(self._watch(), name="watcher")
        try:
            while not self._stopping.is_set():
                if not await _outlived(self._work(), "The worker failed; it is started again"):
                    self._was_disturbed = True
                await self._pause(RESTART_SECONDS)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _work(self) -> None:
        # Periodic jobs are deferred by Django's connection of asgiref's thread, which nobody else
        # gives back: left broken by an outage, it would end every new worker within a second.
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(SyncToAsync.single_thread_executor, close_old_connections)
        connector = PsycopgConnector(kwargs=connector_params(), min_size=1, max_size=4)
        async with django_app.with_connector(connector).open_async() as app:
            app.perform_import_paths()
            app.job_manager = ClaimedJobs(app.connector)
            self._worker = self._make_worker(app)
            if self._stopping.is_set():
                return
            self.state = "running"
            try:
                await self._worker.run()
            finally:
                self._worker = None
                self.state = "draining" if self._stopping.is_set() else "restarting"

    def _make_worker(self, app: App) -> Worker:
        return Worker(
            app=app,
            name="notewire",
            concurrency=CONCURRENCY,
            fetch_job_polling_interval=0.25,
            abort_job_polling_interval=1.0,
            shutdown_graceful_timeout=GRACE_SECONDS,
            delete_jobs=procrastinate_jobs.DeleteJobCondition.SUCCESSFUL,
            additional_context={"runtime": self._runtime},
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_SECONDS,
            stalled_worker_timeout=heartbeats.STALLED_SECONDS,
        )

    async def _watch(self) -> None:
        """Look as soon as there is a worker, and again and again.

        After a disturbance the others are given the time of a heartbeat first.
        """
        while not self._stopping.is_set():
            worker = self._worker
            if worker is None or worker.worker_id is None:
                await self._pause(NOTICE_SECONDS)
                continue
            if self._was_disturbed:
                self._was_disturbed = False
                await self._pause(HEARTBEAT_SECONDS)
            elif await _outlived(
                self._take_up_stalled(worker), "The look for jobs without a worker failed"
            ):
                await self._pause(SWEEP_SECONDS)
            else:
                self._was_disturbed = True

    async def _take_up_stalled(self, worker: Worker) -> None:
        jobs = worker.app.job_manager
        for job in await jobs.get_stalled_jobs(seconds_since_heartbeat=heartbeats.STALLED_SECONDS):
            if job.worker_id == worker.worker_id:
                continue
            logger.warning("%s %s lost its worker; taking it up", job.task_name, job.task_kwargs)
            await jobs.retry_job(job)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return


async def _outlived(work: Coroutine[None, None, None], said: str) -> bool:
    """Whether ``work`` ended well; what it raised is logged, so that its supervisor goes on."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    error = None if task.cancelled() else task.exception()
    if error is not None:
        logger.error(said, exc_info=error)
    return error is None
