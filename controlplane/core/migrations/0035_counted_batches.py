"""Add the latest batches of a relay whose counts are stored, for batches that overtake others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0034_data_plane_stopped"),
    ]

    operations = [
        migrations.AddField(
            model_name="dataplane",
            name="counted_bits",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
