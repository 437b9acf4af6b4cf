"""Add the mark of data planes and relays that stopped cleanly."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0033_fleet"),
    ]

    operations = [
        migrations.AddField(
            model_name="dataplane",
            name="is_stopped",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
