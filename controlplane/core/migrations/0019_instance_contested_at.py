"""Add the time at which two processes or tokens last reported as the same instance."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0018_token_services")]
    operations = [
        migrations.AddField(
            model_name="instance",
            name="contested_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
