"""Create the table of comments."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0025_check_counts")]
    operations = [
        migrations.CreateModel(
            name="Comment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("key", models.CharField(max_length=40)),
                ("text", models.TextField()),
                ("author", models.CharField(max_length=200)),
                ("written_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["kind", "key", "id"], name="comment_by_object")]
            },
        ),
    ]
