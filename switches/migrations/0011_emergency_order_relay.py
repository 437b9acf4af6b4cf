from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("switches", "0010_emergency_drills"),
    ]

    operations = [
        migrations.AddField(
            model_name="emergencyorder",
            name="relay",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
    ]
