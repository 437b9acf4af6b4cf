"""Django's admin shows every table of SLOs that it can."""

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib import admin
from django.db.models import CompositePrimaryKey
from django.test import Client

from controlplane.core.http.tests.callers import MODEL_BACKEND, person
from slo.models import CounterMinute

from .factories import counted, slo

import_module("controlplane.urls")  # Loads all admin pages.
pytestmark = pytest.mark.django_db

MODELS = list(apps.get_app_config("slo").get_models())
SHOWN = [one for one in MODELS if not isinstance(one._meta.pk, CompositePrimaryKey)]


@pytest.fixture
def client():
    client = Client()
    client.force_login(person("admin"), backend=MODEL_BACKEND)
    return client


def test_only_tables_whose_key_is_of_two_columns_are_left_out():
    assert {one for one in MODELS if admin.site.is_registered(one)} == set(SHOWN)
    assert CounterMinute not in SHOWN


@pytest.mark.parametrize("model", SHOWN)
def test_list_of_each_opens_and_nothing_may_be_added(client, model):
    counted(slo(), [(1, 1, 1)])
    place = f"/admin/slo/{model._meta.model_name}/"

    assert client.get(f"{place}?q=core").status_code == 200
    assert client.get(f"{place}add/").status_code == 403
