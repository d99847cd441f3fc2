"""Messages and runs are dated by the database: their order is not that of the hosts' clocks."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("chat", "0004_call_origin")]

    operations: ClassVar[list[Operation]] = [
        migrations.AlterField(
            model_name=name,
            name="created",
            field=models.DateTimeField(db_default=Now(), editable=False),
        )
        for name in ("message", "run")
    ]
