"""Add columns for retried letters that failed again: in the archive, and counted by bulk job."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("breakers", "0005_alarms_of_outages")]

    operations = [
        migrations.AddField(
            model_name="departure",
            name="failed_again_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="departure",
            name="failed_again_as",
            field=models.CharField(
                blank=True, db_collation="C", db_default="", default="", max_length=41
            ),
        ),
        migrations.AddField(
            model_name="replay",
            name="failed_again",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
