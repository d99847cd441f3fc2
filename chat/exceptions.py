"""Errors of chat by audience.

ChatError                     for the person: a public message and a machine-readable code
  ProviderError               a vendor failed; carries the Fault (status, retryable)
  NoProviderError             nothing is configured that could answer
  ModelUnknownError           the reference names no model that is configured
  ConversationBusyError       another run is active; carries its id
  RunSupersededError          later messages follow the run in its conversation
  MessageTooLargeError        more text than one message may hold
  ApprovalClosedError         it was decided otherwise, or is no longer awaited; carries its id
  ApprovalStaleError          what the call would change is another by now; carries its id
  ApprovalInvalidError        the decision itself is none that can be taken; says of which field
HandBack                      for the worker: the process goes down, another takes the run on
FencedOut                     for the executor: another attempt owns the run; stop silently
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from chat.types import Fault


class ChatError(Exception):
    """Something to tell the person. ``code`` is stable, ``str(error)`` is fit to be shown."""

    code = "error"


class ProviderError(ChatError):
    code = "provider_error"

    def __init__(self, message: str, *, provider: str, fault: Fault) -> None:
        super().__init__(message)
        self.provider = provider
        self.fault = fault


class NoProviderError(ChatError):
    code = "no_provider"


class ModelUnknownError(ChatError):
    code = "model_unknown"


class ConversationBusyError(ChatError):
    code = "conversation_busy"

    def __init__(self, run_id: UUID, *, is_awaiting: bool = False) -> None:
        super().__init__(
            "This answer awaits your decision on a call. Decide it or stop the answer."
            if is_awaiting
            else "This conversation is still answering. Wait for it or stop it."
        )
        self.run_id = run_id


class RunSupersededError(ChatError):
    code = "run_superseded"


class MessageTooLargeError(ChatError):
    code = "message_too_large"


class ApprovalClosedError(ChatError):
    code = "approval_closed"

    def __init__(self, message: str, *, approval_id: UUID) -> None:
        super().__init__(message)
        self.approval_id = approval_id


class ApprovalStaleError(ChatError):
    code = "approval_stale"

    def __init__(self, approval_id: UUID, message: str) -> None:
        super().__init__(message)
        self.approval_id = approval_id


class ApprovalInvalidError(ChatError):
    code = "invalid"

    def __init__(self, message: str, *, fields: Mapping[str, Sequence[str]]) -> None:
        super().__init__(message)
        self.fields = fields


class ApprovalModeFixedError(ChatError):
    code = "approval_mode_fixed"

    def __init__(self, mode: str) -> None:
        super().__init__(f"Whoever runs this server has chosen the mode {mode!r} for everybody.")


class HandBack(Exception):
    """The process is going down in the middle of a run; the job is retried elsewhere."""


class FencedOut(Exception):
    """A later attempt owns the run: nothing more may be written by this one."""
