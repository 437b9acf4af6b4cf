"""The accounts' pages."""

from controlplane.accounts.authentication import urls as authentication
from controlplane.accounts.people import urls as people
from controlplane.accounts.tokens import urls as tokens

urlpatterns = [*authentication.urlpatterns, *people.urlpatterns, *tokens.urlpatterns]
