"""Start-up: every installed app's ``tools`` module registers its tools, as with the admin.

A broken module raises and leaves the registry as it was; an app without one is skipped.
"""

from importlib import import_module

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class ToolsConfig(AppConfig):
    name = "tools"

    def ready(self) -> None:
        from tools.registry import registry

        import_module("tools.checks")
        import_module("tools.builtin")
        autodiscover_modules("tools", register_to=registry)
