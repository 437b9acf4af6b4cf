from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the time of an alert's latest figures; it stays null where an earlier release writes."""

    dependencies = [("slo", "0004_rename_fields")]

    operations = [
        migrations.AddField("alert", "latest_at", models.DateTimeField(null=True, blank=True)),
    ]
