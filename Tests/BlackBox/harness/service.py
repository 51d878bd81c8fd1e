"""Clients that act for themselves."""

from .ledger import LEDGER
from .realm import call


def service(realm, name, *scopes, node=None, secret=True, **settings):
    """A confidential client with a service account and `gt:client_credentials`; returns it, at work, and the account's id."""
    client = realm.client(name)
    account = realm.world.admin.run(
        call("put_client", realm.slug, client, client_type="confidential", **settings),
        call("put_service_account", realm.slug, f"{name}-account", client),
        call("grant_permission", realm.slug, client, variadic=["gt:client_credentials", *[f"scp:{scope}" for scope in scopes]]),
    )[1][0]
    if secret:
        realm.secrets[name] = LEDGER.add("client_secret", realm.world.admin.call("rotate_client_secret", realm.slug, client))
    realm.world.settle()
    return realm.app(name, node), account


def ask(app, **parameters):
    """Asks for a token; the raw answer."""
    return app.token({"grant_type": "client_credentials", **app.credentials(), **parameters})


def granted(app, **parameters):
    """Asks for a token; the token answer of a success."""
    answer = ask(app, **parameters)
    assert answer.status == 200, answer
    return answer.json()
