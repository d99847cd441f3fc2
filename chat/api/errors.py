"""What the services of chat raise, as the envelope tells it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chat.events import ErrorOccurred
from chat.exceptions import ConversationBusyError, MessageTooLargeError, RunSupersededError
from chat.models import Conversation, Run
from notes.api.errors import api_error
from notes.exceptions import NoteError
from web.errors import ApiError, not_found

#: The status of a JSON answer whose run ended in an error; any other code is a provider's failure.
_STATUS = {"no_provider": 503, "model_unknown": 400, "model_required": 400, "internal": 500}


@contextmanager
def translated() -> Iterator[None]:
    """Around every call of a service or selector."""
    try:
        yield
    except (Conversation.DoesNotExist, Run.DoesNotExist):
        raise not_found() from None
    except NoteError as error:
        raise api_error(error) from None
    except ConversationBusyError as error:
        raise ApiError(error.code, str(error), 409, extra={"run": str(error.run_id)}) from None
    except RunSupersededError as error:
        raise ApiError(error.code, str(error), 409) from None
    except MessageTooLargeError as error:
        message = str(error)
        raise ApiError(error.code, message, 413, {"content": [message]}) from None


def run_failed(error: ErrorOccurred, run: Run) -> ApiError:
    """A run's error as a JSON answer; ``upstream_status`` is the provider's."""
    extra: dict[str, Any] = {
        "run": str(run.id),
        "conversation": str(run.conversation_id),
        "provider": error.provider,
        "upstream_status": error.status,
        "retryable": error.retryable,
    }
    return ApiError(error.code, error.message, _STATUS.get(error.code, 502), extra=extra)
