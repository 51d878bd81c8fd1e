"""The reference client's sign-ins, as sign-in.json tells them."""

import base64
import hashlib
import json
import urllib.parse

from .stage import Lost
from .urls import HOST, ORIGIN

CLIENT_ID = "vector-client"
MOST_WORK = 5_000_000
OTP, MAGIC = "urn:cocoar:otp", "urn:cocoar:magic"
POLLS = {"link": (MAGIC, "auth_session"), "approval": ("urn:openid:params:grant-type:ciba", "auth_req_id"),
         "device": ("urn:ietf:params:oauth:grant-type:device_code", "device_code")}


class Failure(Exception):
    """What a call throws."""

    def __init__(self, error, **details):
        super().__init__(error)
        self.told = {"error": error, **details}

    @classmethod
    def of(cls, answer, grant=None):
        """What an answer without success means; `invalid_grant` means something else to each grant."""
        body, status = answer.get("json", {}), answer["status"]
        error, text = body.get("error") or body.get("title") or str(status), body.get("error_description", "")
        after = answer.get("headers", {}).get("Retry-After")
        if status == 429:
            return cls("rateLimited", retryAfter=int(after))
        if status >= 500 or status < 300:
            return cls("unavailable", **({"retryAfter": int(after)} if after else {}))
        if error == "invalid_grant" and text.startswith("Two-factor"):
            return cls("secondFactorNeeded")
        if error == "invalid_grant" and text.startswith("The two-factor"):
            return cls("secondFactorWrong")
        known = {"access_denied": "denied", "expired_token": "expired", "address_proof_required": "addressProofNeeded"}
        if error == "invalid_grant" and grant in ("code", "poll"):
            return cls({"code": "wrongCode", "poll": "expired"}[grant])
        if error in known:
            return cls(known[error])
        if error in ("Firstname is required.", "Lastname is required."):
            return cls("namesNeeded", names=[error.split()[0]])
        return cls("refused", code=error, status=status)


class SignIns:
    """Calls that sign in."""

    async def decided(self, request, proof=True):
        """A call whose lost answer is not asked for again."""
        try:
            return await self.once({**request, "proves": proof})
        except Lost:
            raise Failure("unavailable") from None

    async def again(self, request, seconds=45):
        """A token request that is sent again while no answer comes."""
        began, pause = self.stage.now, 0.5
        while True:
            try:
                answer = await self.once(request)
                if answer["status"] < 500 and (answer["status"] != 200 or self.is_token_answer(answer)):
                    return answer
            except Lost:
                pass
            if self.stage.now + pause >= began + seconds:
                raise Failure("unavailable")
            await self.stage.sleep(pause)
            pause = min(8, pause * 2)

    async def establish(self, answer, audience="default", finishing=None, subject=None):
        """A new session in the place of the old one."""
        from .client import claims  # pylint: disable=import-outside-toplevel
        body = answer["json"]
        token = claims(body["id_token"])
        wrong = "invalid_response" if token["iss"] != ORIGIN or token["aud"] != CLIENT_ID else "different_user" if subject not in (None, token["sub"]) else None

        def keep(document):
            if wrong:
                document["revoke"].append(body["refresh_token"])
                return
            if document["session"] and document["session"]["id"] != token["sid"] and document["session"]["refresh"]:
                document["revoke"].append(document["session"]["refresh"])
            document["session"] = {"id": token["sid"], "user": token["sub"], "refresh": body.get("refresh_token"), "bound": body["token_type"] == "DPoP", "idToken": body["id_token"]}
            document["hint"], document["access"] = body["id_token"], [self.access(answer, self.audience(audience))]
            document["pending"] = [one for one in document["pending"] if one["id"] != finishing]

        await self.change(keep)
        document = await self.read()
        await self.revoke_old(document)
        if wrong:
            raise Failure("refused", code=wrong, status=200)
        return {"user": token["sub"]}

    # -- asking ------------------------------------------------------------------------------------------

    async def _ask(self, name, path, members, kind):
        """POST of JSON with the hint, and the work that a challenge wants, once."""
        document = await self.read()
        body = {**members, "ClientId": CLIENT_ID, **({"IdTokenHint": document["hint"]} if document["hint"] else {})}
        answer = await self.decided({"method": "POST", "url": ORIGIN + path, "json": body})
        if answer["status"] == 400 and answer["json"].get("error") == "challenge_required":
            if answer["json"]["Challenge"]["maxnumber"] <= MOST_WORK:
                answer = await self.decided({"method": "POST", "url": ORIGIN + path, "json": {**body, "Challenge": solved(answer["json"]["Challenge"])}})
        if answer["status"] != 200:
            raise Failure.of(answer)
        given = answer["json"]
        made = {"id": name, "kind": kind, "handle": given["AuthSession"], "interval": given.get("Interval", 5), "asked": self.stage.now, "path": path, "members": members}
        await self.change(lambda document: document["pending"].append(made))
        return {"made": "code" if kind == "code" else "signIn", **({"matchNumber": given["MatchNumber"]} if "MatchNumber" in given else {})}

    async def requestCode(self, name, email, firstName=None):  # pylint: disable=invalid-name
        """A code to an address."""
        return await self._ask(name, "/api/account/native/otp/request", {"Email": email, **({"FirstName": firstName} if firstName else {})}, "code")

    async def requestLink(self, name, email):  # pylint: disable=invalid-name
        """A link to an address."""
        return await self._ask(name, "/api/account/magic-link/request", {"Email": email}, "link")

    async def resend(self, _name, of):
        """The same request once more."""
        found = await self._pending(of)
        document = await self.read()
        body = {**found["members"], "ClientId": CLIENT_ID, "AuthSession": found["handle"], **({"IdTokenHint": document["hint"]} if document["hint"] else {})}
        answer = await self.decided({"method": "POST", "url": ORIGIN + found["path"], "json": body})
        if answer["status"] != 200:
            raise Failure.of(answer)

        def renew(document):
            for one in document["pending"]:
                if one["id"] == of:
                    one["handle"] = answer["json"]["AuthSession"]

        await self.change(renew)
        return {"made": "code" if found["kind"] == "code" else "signIn"}

    async def _begin(self, name, path, form, kind, handle):  # pylint: disable=too-many-arguments
        answer = await self.decided({"method": "POST", "url": ORIGIN + path, "form": {"client_id": CLIENT_ID, "scope": self.scopes, **form}})
        if answer["status"] != 200:
            raise Failure.of(answer)
        given = answer["json"]
        made = {"id": name, "kind": kind, "handle": given[handle], "interval": given.get("interval", 5), "asked": self.stage.now}
        await self.change(lambda document: document["pending"].append(made))
        return {"made": "signIn", **({"userCode": given["user_code"]} if "user_code" in given else {})}

    async def requestApproval(self, name, hint):  # pylint: disable=invalid-name
        """An approval on a device of the person."""
        return await self._begin(name, "/connect/bc-authorize", {"login_hint": hint}, "approval", "auth_req_id")

    async def requestDeviceSignIn(self, name):  # pylint: disable=invalid-name
        """A sign-in on another device."""
        return await self._begin(name, "/connect/device_authorization", {}, "device", "device_code")

    async def pending(self, _name):
        """What seems alive."""
        return {"pending": [one["id"] for one in (await self.read())["pending"]]}

    async def forget(self, _name, of):
        """The app does not want it any more."""
        await self.change(lambda document: document.update(pending=[one for one in document["pending"] if one["id"] != of]))
        return {}

    async def _pending(self, name):
        found = [one for one in (await self.read())["pending"] if one["id"] == name]
        if not found:
            raise Failure("expired")
        return found[0]

    # -- redeeming ------------------------------------------------------------------------------------------

    async def signIn(self, _name, code, of, **factor):  # pylint: disable=invalid-name
        """With a code as it was typed."""
        if not code:
            raise Failure("misuse")
        found = await self._pending(of)
        form = {"grant_type": OTP, "client_id": CLIENT_ID, "auth_session": found["handle"], "otp_code": code, "scope": self.scopes, **second(factor)}
        answer = await self.again({"method": "POST", "url": f"{ORIGIN}/connect/token", "form": form})
        if answer["status"] != 200:
            raise Failure.of(answer, "code")
        return await self.establish(answer, finishing=of)

    async def wait(self, name, of, **factor):
        """Polls until it is decided; callers share the polls."""
        if of not in self.polls:
            self.polls[of] = self.stage.spawn(self._poll(of, factor))
        try:
            return await self.polls[of]
        finally:
            self.polls.pop(of, name)

    async def _poll(self, of, factor):
        found = await self._pending(of)
        grant, handle = POLLS[found["kind"]]
        form = {"grant_type": grant, "client_id": CLIENT_ID, handle: found["handle"], "scope": self.scopes, **second(factor)}
        interval, last = found["interval"], found["asked"] if not factor else self.stage.now - found["interval"]
        while True:
            if self.stage.now < last + interval:
                await self.stage.sleep(last + interval - self.stage.now)
            last = self.stage.now
            try:
                answer = await self.once({"method": "POST", "url": f"{ORIGIN}/connect/token", "form": form})
            except Lost:
                continue
            error = answer.get("json", {}).get("error")
            if answer["status"] == 200 and self.is_token_answer(answer):
                return await self.establish(answer, finishing=of)
            if error == "slow_down":
                interval += 5
            elif error != "authorization_pending" and answer["status"] < 500 and answer["status"] != 429:
                failure = Failure.of(answer, "poll")
                if failure.told["error"] in ("denied", "expired"):
                    await self.forget("", of)
                raise failure

    async def open(self, _name, url, **factor):
        """A link that the app was opened with."""
        parts = urllib.parse.urlsplit(url)
        fields = urllib.parse.parse_qs(parts.query, keep_blank_values=True)
        if (parts.scheme, parts.hostname, parts.path) != ("https", HOST, "/magic-login") or [len(fields.get(name, ())) for name in ("userId", "token")] != [1, 1]:
            return {"none": True}
        links = [one for one in (await self.read())["pending"] if one["kind"] == "link"]
        for one in links[::-1][:3]:
            form = {"grant_type": MAGIC, "client_id": CLIENT_ID, "auth_session": one["handle"], "user_id": fields["userId"][0], "magic_token": fields["token"][0], "scope": self.scopes,
                    **second(factor)}
            answer = await self.decided({"method": "POST", "url": f"{ORIGIN}/connect/token", "form": form})
            if answer["status"] == 200:
                return await self.establish(answer, finishing=one["id"])
            failure = Failure.of(answer, "poll")
            if failure.told["error"] != "expired":
                raise failure
        raise Failure("foreignLink")

    async def stepUp(self, _name, code, of, levels, maxAge):  # pylint: disable=invalid-name
        """A newer sign-in of the same person, by code."""
        found, session = await self._pending(of), (await self.read())["session"]
        form = {"grant_type": OTP, "client_id": CLIENT_ID, "auth_session": found["handle"], "otp_code": code, "scope": self.scopes, "acr_values": " ".join(levels), "max_age": str(maxAge)}
        answer = await self.again({"method": "POST", "url": f"{ORIGIN}/connect/token", "form": form})
        if answer["status"] != 200:
            raise Failure.of(answer, "code")
        return await self.establish(answer, finishing=of, subject=session["user"])


def second(factor):
    """The parameter of a second factor."""
    return {{"totp": "totp_code", "recoveryCode": "recovery_code"}[name]: value for name, value in factor.items()}


def solved(challenge):
    """ALTCHA version 1: the number whose digest with the salt is the challenge."""
    number = next(n for n in range(challenge["maxnumber"] + 1) if hashlib.sha256(f"{challenge['salt']}{n}".encode()).hexdigest() == challenge["challenge"])
    found = {name: challenge[name] for name in ("algorithm", "challenge", "salt", "signature")}
    return base64.b64encode(json.dumps({**found, "number": number}).encode()).decode()
