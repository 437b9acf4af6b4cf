from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the target of a time slice and imported names; null where an earlier release writes."""

    dependencies = [("slo", "0006_alert_group")]

    operations = [
        migrations.AddField(
            "slo",
            "slice_target",
            models.DecimalField(max_digits=9, decimal_places=8, null=True, blank=True),
        ),
        migrations.AddField("slo", "metadata", models.JSONField(null=True, blank=True)),
    ]
