"""The procrastinate task that carries a run. Its arguments hold ids only."""

from __future__ import annotations

from uuid import UUID

from procrastinate import JobContext, RetryStrategy
from procrastinate.contrib.django import app

from chat.exceptions import HandBack
from chat.runs import lifecycle
from chat.runs.executor import execute


@app.task(
    name=lifecycle.EXECUTE_TASK,
    pass_context=True,
    retry=RetryStrategy(retry_exceptions={HandBack}),
)
async def execute_run(context: JobContext, *, run_id: str) -> None:
    await execute(
        run_id=UUID(run_id),
        runtime=context.additional_context["runtime"],
        abort_reason=context.abort_reason,
    )
