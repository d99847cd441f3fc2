from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0003_listeners"),
    ]

    operations = [
        migrations.AddField(
            model_name="toolcall",
            name="from_outside",
            field=models.BooleanField(default=False),
        ),
    ]
