from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0004_instances"),
    ]

    operations = [
        migrations.AddField(
            model_name="instance",
            name="first_heard_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
