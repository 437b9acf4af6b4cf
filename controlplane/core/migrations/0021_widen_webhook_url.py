"""Widen the column of webhook URLs for their sealed form."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0020_index_contested_instances")]
    operations = [
        migrations.AlterField(
            model_name="target",
            name="webhook_url",
            field=models.CharField(blank=True, max_length=4000),
        ),
    ]
