from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("notes", "0012_search_tongues"),
    ]

    operations = [
        migrations.AddField(
            model_name="notetransfer",
            name="trusted",
            field=models.BooleanField(default=False),
        ),
    ]
