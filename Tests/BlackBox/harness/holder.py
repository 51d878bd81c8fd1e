"""Somebody who is signed in and holds a passkey."""

from dataclasses import dataclass

from .authenticator import Credential


@dataclass
class Holder:
    """A user at one app: a fresh access token, the passkey's management id, and what the authenticator keeps of it."""

    app: object
    email: str
    token: str
    refresh_token: str
    passkey: str
    credential: Credential


def signed_in(realm, client="app", email=None):
    """A user with a token and no passkey."""
    app, email = realm.app(client), email or realm.user()
    tokens = app.sign_in(email)
    return Holder(app, email, tokens["access_token"], tokens["refresh_token"], None, None)


def holder(realm, client="app", email=None, **how):
    """A user with a token and a passkey; the notice about it has arrived, so that no code is mistaken for it."""
    made = signed_in(realm, client, email)
    before = len(realm.world.mailbox.to(made.email))
    made.passkey, made.credential = made.app.enroll(made.token, **how)
    realm.world.mailbox.wait(made.email, before + 1)
    return made


def stored_count(world, passkey):
    """The counter in the credential's row."""
    return int(world.cluster.value(f"SELECT sign_count FROM postern.passkey WHERE id = '{passkey}'"))
