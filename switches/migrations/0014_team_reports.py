"""Weekly reports of teams."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("switches", "0013_record_published_versions")]
    operations = [
        migrations.CreateModel(
            name="TeamReport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("generated_at", models.DateTimeField()),
                ("final", models.BooleanField(default=False)),
                ("content", models.JSONField()),
                ("anchor_id", models.BigIntegerField(blank=True, null=True)),
                ("anchor_hash", models.CharField(blank=True, max_length=64)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("signed_at", models.DateTimeField(blank=True, null=True)),
                ("signed_by", models.CharField(blank=True, max_length=200)),
                ("comment", models.TextField(blank=True)),
                ("week", models.CharField(max_length=8)),
                ("team", models.CharField(max_length=40)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("final", True), ("signed_at__isnull", True)),
                        fields=["team", "week"],
                        name="team_report_unsigned",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("week", "team"), name="team_report_once")
                ],
            },
        ),
    ]
