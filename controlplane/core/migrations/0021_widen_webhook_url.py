"""Room for a webhook's URL as it is once it is sealed."""

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
