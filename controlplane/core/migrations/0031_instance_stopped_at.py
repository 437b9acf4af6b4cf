"""Add the time of an instance's final report, sent when its process stopped cleanly."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0030_user_must_change_password")]
    operations = [
        migrations.AddField(
            model_name="instance",
            name="stopped_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
