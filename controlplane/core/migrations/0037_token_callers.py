"""Create the table of the services in whose names tokens are used, or were refused."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0036_teams"),
    ]

    operations = [
        migrations.CreateModel(
            name="TokenCaller",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("service", models.CharField(max_length=120)),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                ("refused_at", models.DateTimeField(blank=True, null=True)),
                (
                    "token",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="callers",
                        to="core.token",
                    ),
                ),
            ],
            options={
                "ordering": ("service",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("refused_at__isnull", False)),
                        fields=["refused_at"],
                        name="tokencaller_refused",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("token", "service"), name="tokencaller_once")
                ],
            },
        ),
    ]
