"""Create the table of checks per switch, by the minute and by the hour."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0024_target_transport_settings")]
    operations = [
        migrations.CreateModel(
            name="CheckCount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("switch", models.CharField(db_collation="C", max_length=250)),
                ("seconds", models.PositiveSmallIntegerField()),
                ("start", models.BigIntegerField()),
                ("allowed", models.BigIntegerField(db_default=0, default=0)),
                ("blocked", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                "indexes": [models.Index(fields=["seconds", "start"], name="check_count_by_time")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("switch", "seconds", "start"), name="check_count_once"
                    )
                ],
            },
        ),
    ]
