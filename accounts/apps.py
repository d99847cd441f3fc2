from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from accounts.api import openapi as openapi  # Registers itself with drf-spectacular.
