"""auth0-api-python: an API that takes our access tokens with proofs, and refuses downgrades."""

import asyncio

from auth0_api_python import ApiClient, ApiClientOptions
from conversation import hear, tell

settings = hear()
client = ApiClient(ApiClientOptions(domain=settings["issuer"].removeprefix("https://"), audience=settings["audience"]))


async def main():
    """Judges each request that it is told of."""
    while True:
        asked = await asyncio.to_thread(hear)
        try:
            claims = await client.verify_request(asked["headers"], asked["method"], asked["url"])
            tell(sub=claims["sub"], cnf=claims.get("cnf"))
        except Exception as refused:
            tell(refused=type(refused).__name__, text=str(refused))


asyncio.run(main())
