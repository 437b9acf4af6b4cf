from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Store with each alert the group of those that have one cause."""

    atomic = False
    dependencies = [("slo", "0005_alert_latest_at")]
    operations = [
        migrations.AddField("alert", "group", models.BigIntegerField(blank=True, null=True)),
        AddIndexConcurrently("alert", models.Index(fields=["group"], name="alert_by_group")),
    ]
