"""The cast: Alice owns the notes, Mallory must never see them."""

from __future__ import annotations

import pytest

from accounts.models import User


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice", password="correct horse")


@pytest.fixture
def mallory(db: None) -> User:
    return User.objects.create_user("mallory", password="battery staple")
