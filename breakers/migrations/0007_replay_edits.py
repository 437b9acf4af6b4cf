"""Add a column for the change that a bulk job makes to the messages it retries."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("breakers", "0006_letters_failed_again")]

    operations = [
        migrations.AddField(
            model_name="replay",
            name="edit",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
