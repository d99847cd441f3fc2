#!/usr/bin/env python
"""Django's command line for Notewire."""

import os
import signal
import sys


def main() -> None:
    # Only an orderly exit runs the exit handlers, and one of them stops the embedded database,
    # which starts with the settings.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
