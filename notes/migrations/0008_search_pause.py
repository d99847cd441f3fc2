"""When a text that could not be indexed is due again, in the entry that stands for its rest."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("notes", "0007_note_from_outside")]

    operations = [
        migrations.AddField(
            model_name="notesearchentry",
            name="failures",
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="notesearchentry",
            name="due",
            field=models.DateTimeField(null=True),
        ),
    ]
