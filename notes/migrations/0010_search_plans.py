"""One plan for writing search entries, however many notes: planning anew costs as much as a note."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("notes", "0009_search_words")]

    operations = [
        migrations.RunSQL(
            "ALTER FUNCTION notes_search_write(uuid[]) SET plan_cache_mode = force_generic_plan",
            "ALTER FUNCTION notes_search_write(uuid[]) RESET plan_cache_mode",
        )
    ]
