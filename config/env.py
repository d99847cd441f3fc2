"""The one place that reads the environment: every setting of an operator, checked and typed."""

from pathlib import Path

import environ

_root = Path(__file__).resolve().parent.parent
_env = environ.Env()
_env.read_env(_root / ".env")

HOME = Path(_env.str("NOTEWIRE_HOME", str(_root / "var"))).resolve()
