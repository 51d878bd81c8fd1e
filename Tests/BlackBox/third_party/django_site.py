"""A Django application that signs its users in with mozilla-django-oidc, as its documentation says."""

import sys
import tempfile
import urllib.parse

import django
from conversation import hear, tell
from django.conf import settings as django_settings
from django.core.management import call_command
from django.http import HttpResponseRedirect, JsonResponse
from django.urls import include, path

TOLD = hear()
SITE = f"http://localhost:{urllib.parse.urlsplit(TOLD['redirect_uri']).port}"
ISSUER = TOLD["issuer"]

django_settings.configure(
    SECRET_KEY="only for this test", DEBUG=True, ALLOWED_HOSTS=["localhost"], ROOT_URLCONF=__name__, USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": tempfile.mkdtemp() + "/db.sqlite3"}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "mozilla_django_oidc"],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware", "mozilla_django_oidc.middleware.SessionRefresh"],
    AUTHENTICATION_BACKENDS=["mozilla_django_oidc.auth.OIDCAuthenticationBackend"],
    LOGIN_REDIRECT_URL="/me", LOGOUT_REDIRECT_URL="/goodbye", LOGIN_REDIRECT_URL_FAILURE="/failed",
    OIDC_RP_CLIENT_ID=TOLD["client_id"], OIDC_RP_CLIENT_SECRET=TOLD["client_secret"], OIDC_RP_SIGN_ALGO="ES256",
    OIDC_OP_AUTHORIZATION_ENDPOINT=ISSUER + "/connect/authorize", OIDC_OP_TOKEN_ENDPOINT=ISSUER + "/connect/token",
    OIDC_OP_USER_ENDPOINT=ISSUER + "/connect/userinfo", OIDC_OP_JWKS_ENDPOINT=ISSUER + "/.well-known/jwks",
    OIDC_USE_PKCE=True, OIDC_STORE_ID_TOKEN=True, OIDC_OP_LOGOUT_URL_METHOD=__name__ + ".provider_logout",
    ALLOW_LOGOUT_GET_METHOD=True)


def provider_logout(request):
    """RP-initiated logout."""
    parameters = {"id_token_hint": request.session["oidc_id_token"], "post_logout_redirect_uri": SITE + "/goodbye"}
    return ISSUER + "/connect/logout?" + urllib.parse.urlencode(parameters)


def me(request):
    """Who is signed in; others are sent to sign in."""
    if not request.user.is_authenticated:
        return HttpResponseRedirect("/oidc/authenticate/?next=/me")
    return JsonResponse({"email": request.user.email, "id": request.user.pk})


def age(request):
    """As if the time after which mozilla-django-oidc asks the provider again had passed."""
    request.session["oidc_id_token_expiration"] = 0
    return JsonResponse({})


urlpatterns = [
    path("oidc/", include("mozilla_django_oidc.urls")), path("me", me), path("age", age),
    path("goodbye", lambda request: JsonResponse({"signed_in": request.user.is_authenticated})),
    path("failed", lambda request: JsonResponse({"failed": request.GET.dict()})),
]

if __name__ == "__main__":
    sys.modules["django_site"] = sys.modules["__main__"]
    django.setup()
    call_command("migrate", verbosity=0)
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    server = ThreadedWSGIServer(("localhost", urllib.parse.urlsplit(SITE).port), WSGIRequestHandler)
    server.set_app(get_wsgi_application())
    tell(listening=True)
    server.serve_forever()
