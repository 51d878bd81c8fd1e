"""The client of MCP's own SDK: an MCP server's 401 leads it to the authorization server; PKCE, the check of `iss`, a resource, refresh."""

import asyncio
import ssl

import httpx2
from conversation import hear, tell
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from urllib.parse import parse_qs, urlsplit

settings = hear()


class Storage(TokenStorage):
    """What the client keeps: it is registered already."""

    tokens = None
    registration = OAuthClientInformationFull(
        client_id=settings["client_id"], redirect_uris=[settings["redirect_uri"]], token_endpoint_auth_method="none", issuer=settings["issuer"],
        grant_types=["authorization_code", "refresh_token"], response_types=["code"], scope=settings["scope"])

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        Storage.tokens = tokens

    async def get_client_info(self):
        return self.registration

    async def set_client_info(self, client_info):
        tell(registered=client_info.model_dump(mode="json"))


async def leave(url):
    """The browser goes there."""
    tell(open=url)


async def come_back():
    """What the browser brings back."""
    members = {name: values[0] for name, values in parse_qs(urlsplit(hear()["arrived"]).query).items()}
    return AuthorizationCodeResult(code=members["code"], state=members["state"], iss=members.get("iss"))


async def main():
    """Two calls of a tool's server: the first signs in, the second refreshes."""
    metadata = OAuthClientMetadata(
        redirect_uris=[settings["redirect_uri"]], token_endpoint_auth_method="none", grant_types=["authorization_code", "refresh_token"],
        response_types=["code"], scope=settings["scope"])
    provider = OAuthClientProvider(settings["server"], metadata, Storage(), leave, come_back)
    context = ssl.create_default_context(cafile=settings["authority"])
    async with httpx2.AsyncClient(auth=provider, verify=context) as client:
        first = await client.get(settings["server"])
        kept = Storage.tokens
        provider.context.token_expiry_time = 1
        second = await client.get(settings["server"])
        tell(first=first.text, second=second.text, tokens=[kept.access_token, Storage.tokens.access_token], scope=kept.scope,
             rotated=kept.refresh_token != Storage.tokens.refresh_token)


asyncio.run(main())
