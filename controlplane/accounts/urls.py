from django.urls import URLPattern

from controlplane.accounts.people import urls as people
from controlplane.accounts.tokens import urls as tokens

api_urlpatterns: list[URLPattern] = [*people.api_urlpatterns, *tokens.api_urlpatterns]
