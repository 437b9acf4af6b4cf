from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0011_first_degradation")]
    operations = [
        migrations.CreateModel(
            name="Hold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200, unique=True)),
                ("service", models.CharField(db_collation="C", max_length=60)),
                ("slos", models.JSONField(default=list)),
                ("why", models.CharField(max_length=500)),
                ("path", models.CharField(blank=True, max_length=500)),
                ("since", models.DateTimeField()),
            ],
        ),
    ]
