from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("switches", "0003_registrations_and_times_of_change"),
    ]

    operations = [
        migrations.AddField(
            model_name="publication",
            name="began_version",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
