"""Add data planes and relays, and the relay through which an instance was heard."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0032_emergency_codes"),
    ]

    operations = [
        migrations.AddField(
            model_name="instance",
            name="relay",
            field=models.CharField(blank=True, db_default="", default="", max_length=120),
        ),
        migrations.CreateModel(
            name="DataPlane",
            fields=[
                ("process", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120)),
                ("upstream", models.CharField(blank=True, default="", max_length=120)),
                ("is_relay", models.BooleanField(default=False)),
                ("release", models.CharField(blank=True, default="", max_length=40)),
                ("epoch", models.UUIDField(blank=True, null=True)),
                ("version", models.BigIntegerField(blank=True, null=True)),
                ("age_seconds", models.FloatField(blank=True, null=True)),
                ("held", models.PositiveIntegerField(default=0)),
                ("instances", models.PositiveIntegerField(default=0)),
                ("started_at", models.DateTimeField()),
                ("heard_at", models.DateTimeField()),
                ("counted_seq", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                "indexes": [models.Index(fields=["heard_at"], name="data_plane_heard")],
            },
        ),
    ]
