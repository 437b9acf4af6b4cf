"""Add a column for the sealed settings of channels that have no columns of their own for them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0023_superseded_messages")]
    operations = [
        migrations.AddField(
            model_name="target",
            name="transport_settings",
            field=models.CharField(blank=True, db_default="", default="", max_length=4000),
        ),
    ]
