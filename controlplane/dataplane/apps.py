from django.apps import AppConfig


class DataplaneConfig(AppConfig):
    name = "controlplane.dataplane"
    label = "dataplane"
    verbose_name = "Data plane"
