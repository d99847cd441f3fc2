from django.db import migrations, models

# What was imported before is known by its revisions.
IMPORTED = """
UPDATE notes_note SET from_outside = true
WHERE id IN (SELECT note_id FROM notes_noterevision WHERE via = 'import')
"""


class Migration(migrations.Migration):
    dependencies = [
        ("notes", "0006_search_read"),
    ]

    operations = [
        migrations.AddField(
            model_name="note",
            name="from_outside",
            field=models.BooleanField(default=False),
        ),
        migrations.RunSQL(IMPORTED, migrations.RunSQL.noop),
    ]
