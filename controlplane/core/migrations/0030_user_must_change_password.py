"""Add the mark of people whose password somebody else has set; nobody gets it by this."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0029_first_steps_state")]
    operations = [
        migrations.AddField(
            model_name="user",
            name="must_change_password",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="True while someone else knows the password.",
            ),
        ),
    ]
