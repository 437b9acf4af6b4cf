from controlplane.accounts.authentication import urls as authentication
from controlplane.accounts.pages import urls as pages
from controlplane.accounts.tokens import urls as tokens

urlpatterns = [*authentication.urlpatterns, *pages.urlpatterns, *tokens.urlpatterns]
