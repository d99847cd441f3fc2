"""Who uses Notewire: the user. API tokens live here too."""

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person (or a service account) with an owner's rights over what they made."""
