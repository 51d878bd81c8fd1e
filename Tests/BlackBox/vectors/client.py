"""The reference client: what a client does for its tokens, as refresh.json tells it. `signing.py` has its sign-ins."""

import base64
import json

from .signing import Failure, SignIns
from .stage import Cancelled, Lost, StoreLocked
from .urls import ORIGIN

IDENTITY = {"openid", "offline_access", "profile", "email", "phone", "address", "roles", "groups", "entitlements"}
CLIENT_ID = "vector-client"
MOST = {"access": 8, "pending": 8, "revoke": 5}


def claims(token):
    """The claims of an ID token."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class Client(SignIns):
    """One client object of an app; other processes write the same store."""

    def __init__(self, stage, settings):
        self.stage = stage
        self.scopes = settings.get("scopes", "openid offline_access")
        self.key = settings.get("key", "software")
        self.nonces, self.flights, self.fresh, self.polls = {}, {}, {}, {}
        self._state = self._seen_state(stage.document, "never")

    # -- the store ------------------------------------------------------------------------------------

    @staticmethod
    def document(facts):
        """The store's document at the beginning."""
        return {"key": True, "session": None, "access": [], "hint": None, "pending": [], "revoke": [], "clock": 0, **facts}

    @staticmethod
    def changed(document, facts):
        """What another process makes of it."""
        return {**document, **facts}

    @staticmethod
    def facts(document, client):
        """What the steps say about it."""
        session = document["session"] or {}
        return {
            "session": session.get("id"), "refresh": session.get("refresh"), "access": [one["value"] for one in document["access"]], "key": document["key"],
            "hint": document["hint"], "revoke": document["revoke"], "clock": document["clock"], "pending": [one["id"] for one in document["pending"]],
        }

    async def read(self):
        """The document; the state follows it."""
        try:
            document = await self.stage.read()
        except StoreLocked:
            self.become("locked")
            raise Failure("unavailable") from None
        lost = document["session"] and (document["session"]["bound"] and not document["key"])
        if lost:
            document.update(session=None, access=[])
            await self.stage.write(document)
            self.become("signedOut:keyLost")
            raise Failure("signedOut", reason="keyLost")
        self.become(self._seen_state(document, self._state.partition(":")[2] if self._state.startswith("signedOut") else "never"))
        return document

    async def change(self, change):
        """Reads, changes and writes; what `change` returns."""
        document = await self.read()
        result = change(document)
        for name, most in MOST.items():
            document[name] = document[name][-most:]
        try:
            await self.stage.write(document)
        except (OSError, StoreLocked):
            raise Failure("unavailable") from None
        return result

    @staticmethod
    def _seen_state(document, reason):
        return f"signedIn:{document['session']['user']}" if document["session"] else f"signedOut:{reason}"

    def become(self, state):
        """Tells a change."""
        if state != self._state:
            self._state = state
            self.stage.states.append(state)

    def state(self):
        """The present one."""
        return self._state

    # -- one request -----------------------------------------------------------------------------------

    def proof(self, url, clock, token=None):
        """A new proof for a request."""
        nonce, came = self.nonces.get(url.split("/")[2], (None, 0))
        members = {"iat": self.stage.now + self.stage.shift + clock}
        if nonce is not None and self.stage.now - came <= 60:
            members["nonce"] = nonce
        return {**members, **({"ath": token} if token else {})}

    async def once(self, request, token=None, is_api=False):
        """One request with a proof, where one is due; again with a nonce, or with a new proof where that is safe."""
        first = None
        while True:
            document = await self.read()
            made = dict(request)
            if self.key != "none" and request.get("proves", True):
                made["proof"] = self.proof(request["url"], document["clock"], token)
            await self.revoke_old(document)
            answer = await self.stage.send({name: value for name, value in made.items() if name != "proves"})
            nonce = {name.lower(): value for name, value in answer.get("headers", {}).items()}.get("dpop-nonce")
            good = nonce if nonce and "," not in nonce else None
            if good:
                self.nonces[request["url"].split("/")[2]] = (good, self.stage.now)
            await self._note_clock(answer)
            error = answer.get("json", {}).get("error") or self._challenge(answer)
            if error == "use_dpop_nonce" and answer["status"] in (400, 401):
                if first == error or not good:
                    raise Failure("unavailable")
            elif error == "invalid_dpop_proof" and answer["status"] in (400, 401) and first is None:
                if not (request["url"].endswith("/connect/token") or request["method"] in ("GET", "PATCH", "DELETE")) and not is_api:
                    raise Lost
            else:
                return answer
            if first is not None:
                return answer
            first = error

    @staticmethod
    def _challenge(answer):
        from .challenges import read  # pylint: disable=import-outside-toplevel
        field = answer.get("headers", {}).get("WWW-Authenticate")
        return read([field], [])["error"] if field else None

    async def _note_clock(self, answer):
        token = answer.get("json", {}).get("id_token")
        if not token:
            return
        difference = claims(token)["iat"] - self.stage.wall
        kept = round(difference) if abs(difference) > 30 else 0
        if kept != (await self.read())["clock"]:
            await self.change(lambda document: document.update(clock=kept))

    async def revoke_old(self, document):
        """Refresh tokens that are still to be revoked go first."""
        if document["revoke"]:
            self.stage.spawn(self._revoke(document["revoke"]))

    async def _revoke(self, tokens):
        for token in tokens:
            try:
                await self.stage.send({"method": "POST", "url": f"{ORIGIN}/connect/revoke", "form": {"client_id": CLIENT_ID, "token": token}})
            except Lost:
                return
            await self.change(lambda document, gone=token: document.update(revoke=[one for one in document["revoke"] if one != gone]))

    # -- tokens ------------------------------------------------------------------------------------------

    def audience(self, audience):
        """With identity scopes alone, one token serves the account and what the sign-in asked for."""
        return "default" if audience == "account" and set(self.scopes.split()) <= IDENTITY else audience

    def usable(self, document, audience):
        """The access token of an audience, if enough of its life is left."""
        wall = self.stage.now + self.stage.shift
        for one in document["access"]:
            if one["audience"] != audience:
                continue
            life = one["expires"] - one["issued"]
            if one["value"] in self.fresh:
                left = self.fresh[one["value"]] - self.stage.now
            else:
                left = one["expires"] - wall if one["issued"] <= wall < one["expires"] else 0
            # Without a refresh token it is the only one there is.
            if left > 0 and (document["session"]["refresh"] is None or left >= min(60, life / 3)):
                return one["value"]
        return None

    async def accessToken(self, _name, audience="default"):  # pylint: disable=invalid-name
        """The call of an app."""
        return {"token": await self.token(audience)}

    async def token(self, audience):
        """One flight for an audience. All its callers wait for it."""
        audience = self.audience(audience)
        document = await self.read()
        if document["session"] is None:
            raise Failure("signedOut", reason=self._state.partition(":")[2])
        if found := self.usable(document, audience):
            return found
        key = json.dumps(audience)
        if key not in self.flights:
            self.flights[key] = self.stage.spawn(self._flight(key, audience))
        return await self.flights[key]

    async def _flight(self, key, audience):
        turn = await self.stage.lock()
        try:
            return await self._refreshed(audience)
        finally:
            self.flights.pop(key, None)
            turn.set()

    async def _refreshed(self, audience):
        began, session, delays = self.stage.now, None, [0.5, 1, 2, 4, 8]
        while True:
            document = await self.read()
            if document["session"] is None or session not in (None, document["session"]["id"]):
                raise Failure("signedOut", reason=self._state.partition(":")[2])
            session, sent = document["session"]["id"], document["session"]["refresh"]
            if found := self.usable(document, audience):
                return found
            if sent is None:
                await self._ended()
            failed = None
            try:
                answer = await self.once(self._request(sent, audience))
                if answer["status"] == 200 and self.is_token_answer(answer):
                    return await self._keep(answer, session, sent, audience)
                failed = self.retry_after(answer)
            except Lost:
                failed = 0
            if failed is None:
                if (answer["status"], answer.get("json", {}).get("error")) != (400, "invalid_grant"):
                    raise Failure.of(answer)
                document = await self.read()
                if document["session"] and document["session"]["id"] == session:
                    if document["session"]["refresh"] != sent:
                        continue
                    await self._ended()
                raise Failure("signedOut", reason=self._state.partition(":")[2] or "ended")
            left = began + 20 - self.stage.now
            wait = max(failed, delays.pop(0) if delays else 8)
            if wait > left:
                raise Failure("unavailable", **({"retryAfter": failed} if failed else {}))
            await self.stage.sleep(wait)

    def _request(self, refresh, audience):
        form = {"grant_type": "refresh_token", "client_id": CLIENT_ID, "refresh_token": refresh}
        if audience == "account":
            form["scope"] = "openid"
        elif isinstance(audience, dict):
            form.update({"scope": " ".join(audience["scopes"]), **({"resource": audience["resource"]} if "resource" in audience else {})})
        return {"method": "POST", "url": f"{ORIGIN}/connect/token", "form": form}

    @staticmethod
    def is_token_answer(answer):
        """Whether the body is what the status promises."""
        return {"access_token", "token_type", "expires_in"} <= set(answer.get("json", {}))

    @staticmethod
    def retry_after(answer):
        """How long an answer that decided nothing wants one to wait, 0 if it does not say; None for an answer that decided."""
        if answer["status"] != 429 and answer["status"] < 500 and (answer["status"] != 200 or Client.is_token_answer(answer)):
            return None
        return int(answer.get("headers", {}).get("Retry-After", 0))

    def access(self, answer, audience):
        """What the store keeps of an access token."""
        wall, body = self.stage.now + self.stage.shift, answer["json"]
        self.fresh[body["access_token"]] = self.stage.now + body["expires_in"]
        return {"audience": audience, "value": body["access_token"], "issued": wall, "expires": wall + body["expires_in"]}

    async def _keep(self, answer, session, sent, audience):
        body = answer["json"]

        def keep(document):
            if document["session"] is None or document["session"]["id"] != session:
                document["revoke"].append(body["refresh_token"])
                return False
            if document["session"]["refresh"] == sent:
                document["session"]["refresh"] = body.get("refresh_token", sent)
                document["hint"] = body.get("id_token", document["hint"])
            document["access"] = [one for one in document["access"] if one["audience"] != audience] + [self.access(answer, audience)]
            return True

        if not await self.change(keep):
            await self.revoke_old(await self.read())
            raise Failure("signedOut", reason=self._state.partition(":")[2] or "ended")
        return body["access_token"]

    async def _ended(self):
        await self.change(lambda document: document.update(session=None, access=[]))
        self.become("signedOut:ended")
        raise Failure("signedOut", reason="ended")

    # -- other calls --------------------------------------------------------------------------------------

    async def send(self, _name, url, method="GET", audience="default"):
        """A request to an API."""
        for attempt in (1, 2):
            token = await self.token(audience)
            kind = "Bearer" if self.key == "none" else "DPoP"
            request = {"method": method, "url": url, "authorization": f"{kind} {token}"}
            try:
                answer = await self.once(request, token, is_api=True)
            except Lost:
                raise Failure("unavailable") from None
            error = self._challenge(answer)
            if answer["status"] == 401 and error == "insufficient_user_authentication":
                raise Failure("stepUpNeeded")
            if answer["status"] != 401 or error != "invalid_token" or attempt == 2:
                return {"status": answer["status"]}
            await self.change(lambda document, bad=token: document.update(access=[one for one in document["access"] if one["value"] != bad]))
        raise AssertionError

    async def signOut(self, _name, scope="thisSession"):  # pylint: disable=invalid-name
        """Here first; at the server now or later."""
        if scope == "everywhere":
            token = await self.token("account")
            kind = "Bearer" if self.key == "none" else "DPoP"
            request = {"method": "DELETE", "url": f"{ORIGIN}/connect/sessions?current=true", "authorization": f"{kind} {token}"}
            try:
                answer = await self.once(request, token)
            except Lost:
                raise Failure("unavailable") from None
            if answer["status"] >= 300:
                raise Failure.of(answer)

        def erase(document):
            if scope != "everywhere" and document["session"] and document["session"]["refresh"]:
                document["revoke"].append(document["session"]["refresh"])
            document.update(session=None, access=[])

        await self.change(erase)
        self.become("signedOut:byUser")
        await self.revoke_old(await self.read())
        return {}

    async def adopt(self, _name, refreshToken):  # pylint: disable=invalid-name
        """A refresh token that the app kept by itself."""
        try:
            answer = await self.once(self._request(refreshToken, "account"))
        except Lost:
            raise Failure("unavailable") from None
        if answer["status"] != 200:
            if (answer["status"], answer["json"].get("error")) == (400, "invalid_grant"):
                raise Failure("signedOut", reason="ended")
            raise Failure.of(answer)
        return await self.establish(answer, "account")

    @staticmethod
    def told(end):
        """The result of a call as steps describe it."""
        if end.error is None:
            return end.value
        if isinstance(end.error, Cancelled):
            return {"error": "cancelled"}
        if isinstance(end.error, Failure):
            return end.error.told
        raise end.error
