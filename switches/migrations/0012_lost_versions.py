import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("switches", "0011_emergency_order_relay"),
    ]

    operations = [
        migrations.CreateModel(
            name="LostVersion",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("epoch", models.UUIDField()),
                ("version", models.BigIntegerField()),
                ("published_at", models.DateTimeField()),
                ("entries", models.JSONField()),
                ("plane", models.TextField()),
                (
                    "received_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("closed_version", models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("epoch", "version", "published_at"),
                        name="lost_version_reported_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("closed_at__isnull", True), ("closed_version__isnull", True)),
                            models.Q(
                                ("closed_at__isnull", False), ("closed_version__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="lost_version_closed_in_version",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PublishedVersion",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("epoch", models.UUIDField()),
                ("version", models.BigIntegerField()),
                ("published_at", models.DateTimeField()),
                ("timeline", models.IntegerField(null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["epoch", "version"], name="published_version")],
            },
        ),
        migrations.CreateModel(
            name="LostChange",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("was_engaged", models.BooleanField()),
                ("description", models.TextField()),
                ("kept_at", models.DateTimeField(blank=True, null=True)),
                ("kept_by", models.CharField(blank=True, db_default="", max_length=200)),
                (
                    "episode",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="switches.episode",
                    ),
                ),
                (
                    "lost_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="switches.lostversion",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("kept_at__isnull", True)),
                        fields=("episode",),
                        name="lost_change_one_open",
                    )
                ],
            },
        ),
    ]
