from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0013_browser_sessions")]
    operations = [
        migrations.CreateModel(
            name="AuditRound",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("begun_at", models.DateTimeField()),
                ("reached_id", models.BigIntegerField(default=0)),
                ("reached_hash", models.CharField(default="0" * 64, max_length=64)),
                ("whole_id", models.BigIntegerField(default=0)),
                ("whole_hash", models.CharField(blank=True, max_length=64)),
                ("whole_at", models.DateTimeField(null=True)),
                ("problem", models.CharField(blank=True, max_length=200)),
                ("broken_at", models.DateTimeField(null=True)),
            ],
        ),
    ]
