"""Posts changes to a Timeline Gateway, signs tokens for it, and verifies what it sends.

Copy this file into your backend. It needs Python 3.9, and the package cryptography for signatures.

    gateway = Gateway("https://gateway.example", "com.mygame", token=lambda: os.environ["BACKEND"])
    gateway.post([event("/game", {"entity": "CharacterDetail", "id": "panda"})])

    signer = Signer(open("issuer.key", "rb").read(), "2026-11", "https://accounts.example",
                    "https://gateway.example")
    token = signer.token("com.mygame", "my-iphone", attributes={"account": "42"})

    notifications = NotificationVerifier("https://gateway.example", "com.mygame")
    id, document = verify_webhook(keys, "com.mygame", request.headers, request.body)
    for jws in document["notifications"]:
        claims = notifications.verify(jws)

Objects may be shared by threads. No secret is compared, so nothing has to take constant time.
"""
import base64
import http.client
import json
import random
import re
import ssl
import threading
import time
import urllib.request
import uuid

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
from cryptography.hazmat.primitives.serialization import load_pem_private_key

# Limits of the gateway with its default configuration, and of this file.
POST_EVENTS, POST_BYTES, NOTIFICATION_BYTES = 1_000, 8 << 20, 16_384
ANSWER_BYTES, WEBHOOK_SIGNATURES, ATTEMPT_SECONDS, BACKOFF_SECONDS = 1 << 20, 8, 15, 60
KEYS_ATTEMPT_SECONDS, KEYS_PAUSE_SECONDS, EXPIRY_TOLERANCE, WEBHOOK_TOLERANCE = 10, 10, 5, 300
KEYS_SECONDS = 270  # A gateway publishes a key 300 s before it signs with it.
COUNTS = ("accepted", "duplicates", "unmatched", "broad", "sequence")


class GatewayError(Exception):
    """The gateway was not reached, which is `status` 0, or refused a request.

    `code` names the problem, `faults` have a `place` and a `message`, `retry_after` is in seconds.
    """

    def __init__(self, url, status, text, retry_after=0.0, first=0):
        super().__init__(url, status, text, retry_after, first)  # For pickle.
        problem = _parsed(text) or {"detail": text[:200]}
        self.status, self.retry_after = status, retry_after
        self.code = str(problem.get("type", "")).rpartition(":")[2]
        # The gateway counts from the first event of a batch, and a caller from that of the post.
        faults = problem.get("faults") if isinstance(problem.get("faults"), list) else []
        self.faults = [
            {**one, "place": re.sub(r"^\[(\d{1,9})\]", lambda found: f"[{first + int(found[1])}]",
                str(one.get("place")))} for one in faults if isinstance(one, dict)]
        said = [f"{one['place']}: {one.get('message')}" for one in self.faults[:5]]
        said = said or [str(problem.get("detail") or problem.get("title") or "")]
        answer = f"{status} {self.code}".strip() if status else "no answer"
        self._message = f"{url}: " + "; ".join(part for part in (answer, *said) if part)

    def __str__(self):
        return self._message

    @property
    def is_temporary(self):
        """Whether the same request may succeed later."""
        return self.status in (0, 408, 425, 429) or self.status >= 500


class Rejection(ValueError):
    """Something is not valid; `field` names what, such as `exp`."""

    def __init__(self, field, message):
        super().__init__(field, message)
        self.field = field

    def __str__(self):
        return ": ".join(self.args)


class _HTTPS:
    """Sends requests to one server."""

    def __init__(self, url, cafile):
        if not url.startswith("https://"):
            raise Rejection("url", f"{url} does not begin with https://")
        # Without a handler of redirects: one would take the token to another server.
        self._opener = urllib.request.OpenerDirector()
        self._opener.add_handler(urllib.request.ProxyHandler())
        self._opener.add_handler(urllib.request.HTTPSHandler(
            context=ssl.create_default_context(cafile=cafile)))

    def send(self, request, seconds, first=0):
        """Returns the status and the body of a 2xx answer; raises GatewayError."""
        url, end, status, body = request.full_url, time.monotonic() + seconds, 0, b""
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                status, after = answer.status, answer.headers.get("Retry-After") or ""
                while len(body) <= ANSWER_BYTES and (piece := answer.read1(65_536)):
                    body += piece
                    if time.monotonic() > end:  # The timeout above is that of one read.
                        raise TimeoutError(f"the answer took more than {seconds} s")
                if answer.length and len(body) <= ANSWER_BYTES:
                    raise http.client.IncompleteRead(body)
        except (OSError, http.client.HTTPException) as error:
            if status < 300:
                raise GatewayError(url, 0, repr(error)) from error
        if 200 <= status < 300 and len(body) <= ANSWER_BYTES:
            return status, body
        text = body[:ANSWER_BYTES].decode(errors="replace")
        wait = float(after) if re.fullmatch("[0-9]{1,9}", after) else 0.0
        raise GatewayError(url, status, text, wait, first)


class Gateway:
    """Posts the changes of one app.

    `token` returns a token with the scope `changes:write`, and is called before each attempt.
    `cafile` names the gateway's authority, if the system does not trust it.
    """

    def __init__(self, url, app, token, cafile=None):
        self._url = f"{url.rstrip('/')}/v1/apps/{_checked('app', app)}/changes"
        self._token, self._https = token, _HTTPS(url, cafile)

    def post(self, events, patience=60.0):
        """Posts events that `event` made, after the commit of the data; returns the answers' sums.

        An attempt that was lost, or answered 408, 425, 429 or 5xx, is repeated with the same ids
        after `Retry-After` and a random time that grows, while it can begin within `patience`
        seconds from the first attempt; with 0, never. Raises GatewayError; some of many events are
        accepted then. Post all of them again: those count as duplicates.
        """
        total = dict.fromkeys(COUNTS, 0)
        for first, body in list(_batches(events)):  # All are encoded before one is sent.
            answer = self._post(body, first, patience)
            highest = max(total["sequence"], answer["sequence"])
            total = {**{name: total[name] + answer[name] for name in COUNTS}, "sequence": highest}
        return total

    def _post(self, body, first, patience):
        end, failures = time.monotonic() + patience, 0
        while True:
            try:
                return self._attempt(body, first)
            except GatewayError as error:
                wait = error.retry_after + random.uniform(0, min(BACKOFF_SECONDS, 2 ** failures))
                if not error.is_temporary or time.monotonic() + wait > end:
                    raise
            failures += 1
            time.sleep(wait)

    def _attempt(self, body, first):
        token = str(self._token() or "").strip()
        if not re.fullmatch("[!-~]+", token):
            raise Rejection("token", "empty, or not visible ASCII")
        status, text = self._https.send(urllib.request.Request(self._url, body, {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/cloudevents-batch+json"}), ATTEMPT_SECONDS, first)
        try:
            return {name: int(_object(text)[name]) for name in COUNTS}
        except (ValueError, TypeError, KeyError):
            raise GatewayError(self._url, status, "not a gateway's answer; check the URL") from None


def event(source, change, id=None):
    """Returns an event with a change, such as `{"entity": "CharacterDetail", "id": "panda"}`.

    `source` says who posts, such as `/game`. The id makes repeating harmless: make the event once
    and post that until it is accepted. With an outbox, the id is the row's.
    """
    return {"specversion": "1.0", "type": "change", "source": source,
            "id": id or str(uuid.uuid4()), "data": change}


def _batches(events):
    """Requests that have all events, in order: the number of the first one, and the body."""
    batch, first, size = [], 0, 2
    for number, one in enumerate(events):
        text = json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode()
        if batch and (len(batch) == POST_EVENTS or size + len(text) + 1 > POST_BYTES):
            yield first, b"[" + b",".join(batch) + b"]"
            batch, first, size = [], number, 2
        batch.append(text)
        size += len(text) + 1
    if batch:
        yield first, b"[" + b",".join(batch) + b"]"


class Signer:
    """Signs tokens as an issuer that the gateway's `issuers` names.

    `key` is an Ed25519 private key in PEM, `kid` its name in the issuer's key set, `issuer` the
    `iss` of the configuration, and `audience` the gateway's `publicURL`.
    """

    def __init__(self, key, kid, issuer, audience):
        try:
            self._key = load_pem_private_key(key, None)
        except (TypeError, ValueError, UnsupportedAlgorithm):
            self._key = None
        if not isinstance(self._key, ed25519.Ed25519PrivateKey):
            raise Rejection("key", "not an Ed25519 private key in PEM, without a passphrase")
        self._kid, self._issuer, self._audience = kid, issuer, audience

    def token(self, app, sub, scope="client", attributes=None, ttl=86_400):
        """Returns a token, valid for `ttl` seconds, 30 days at most for a client.

        `sub` is the client's id, and `attributes` the texts, or lists of texts, that decide which
        changes the client is notified of. Take them from the session, never from the request.
        """
        now = int(time.time())
        claims = {"iss": self._issuer, "aud": self._audience, "app": _checked("app", app),
                  "sub": _checked("sub", sub), "scope": scope, "iat": now, "exp": now + int(ttl),
                  "jti": str(uuid.uuid4()), **({"attributes": attributes} if attributes else {})}
        parts = {"alg": "EdDSA", "typ": "JWT", "kid": self._kid}, claims
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in parts)
        return f"{signed}.{_base64url(self._key.sign(signed.encode()))}"


class NotificationVerifier:
    """Verifies notifications with the gateway's published keys, which it fetches and caches.

    `issuer` is the gateway's `publicURL`; `keys_url` is needed if its key set is reached elsewhere.
    """

    def __init__(self, issuer, app, keys_url=None, cafile=None):
        self._issuer, self._app = issuer, app
        self._url = keys_url or f"{issuer.rstrip('/')}/.well-known/jwks.json"
        self._https, self._lock = _HTTPS(self._url, cafile), threading.Lock()
        # The keys with the time of their fetch; the time of the last attempt, and its failure.
        self._cache, self._tried, self._failure = ({}, 0.0), float("-inf"), None

    def verify(self, notification, now=None):
        """Returns the claims of a compact JWS. The same `jti` may arrive more than once.

        Raises Rejection, or GatewayError if there are no keys: then verify it again later.
        """
        now = time.time() if now is None else now
        if len(notification) > NOTIFICATION_BYTES:
            raise Rejection("size", f"more than {NOTIFICATION_BYTES} bytes")
        parts = notification.split(".")
        if len(parts) != 3:
            raise Rejection("form", "not three parts joined by dots")
        header = _object(_bytes(parts[0]))
        if not re.fullmatch(r"(?i)(application/)?timeline-reload\+jwt", str(header.get("typ"))):
            raise Rejection("typ", "not that of a notification, timeline-reload+jwt")
        if "crit" in header:
            raise Rejection("crit", "an extension that is not known")
        if not isinstance(header.get("kid"), str):
            raise Rejection("kid", "missing")
        algorithm, key = self._key(header["kid"])
        if header.get("alg") != algorithm:
            raise Rejection("alg", f"the key is for {algorithm}")
        if not _is_signed(key, _bytes(parts[2]), f"{parts[0]}.{parts[1]}".encode()):
            raise Rejection("signature", "does not fit the key that kid names")
        claims = _object(_bytes(parts[1]))
        if claims.get("aud") != self._app:
            raise Rejection("aud", f"for another app, not {self._app}")
        if claims.get("iss") != self._issuer:
            raise Rejection("iss", f"not by {self._issuer}")
        exp = claims.get("exp")
        if type(exp) not in (int, float) or not exp > now - EXPIRY_TOLERANCE:
            raise Rejection("exp", "the notification has expired; poll with the same cursor")
        return claims

    def _key(self, kid):
        now = time.monotonic()  # Before the lock: who waited for an attempt begins no other.
        if key := self._cached(kid, now):
            return key
        with self._lock:
            if not self._cached(kid, now) and now - self._tried >= KEYS_PAUSE_SECONDS:
                self._fetch(now)
            if key := self._cached(kid, now):
                return key
            if self._failure:
                raise GatewayError(*self._failure)
        raise Rejection("kid", f"no key of {self._url} has this name")

    def _cached(self, kid, now):
        keys, fetched = self._cache
        return keys.get(kid) if now - fetched < KEYS_SECONDS else None

    def _fetch(self, now):
        """Replaces the keys. After a failure, those there are stay until their time is over."""
        self._tried = now
        try:
            status, text = self._https.send(urllib.request.Request(self._url), KEYS_ATTEMPT_SECONDS)
            try:
                keys = {jwk["kid"]: key for jwk in _object(text)["keys"] if (key := _public(jwk))}
            except (Rejection, KeyError, TypeError):
                raise GatewayError(self._url, status, "not a JWK set; check the URL") from None
            self._cache, self._failure = (keys, now), None
        except GatewayError as error:
            self._failure = error.args


def verify_webhook(keys, app, fields, body, now=None):
    """Verifies a webhook, or a question for a Live Activity's content; returns its id and document.

    `keys` are the `webhookKeys` of the registration's answer, or the `contentKeys` of the
    catalog's, and `body` the bytes as they came. Raises Rejection: answer 400. A retry has the same
    id: answer it 2xx, and do not act on it twice. A gateway signs for all its apps by the same
    keys: a question that is not of `app` is rejected here, and of a webhook only the notifications
    that NotificationVerifier accepts are the app's.
    """
    fields = {name.lower(): value for name, value in fields.items()}
    id, stamp, listed = (str(fields.get(f"webhook-{name}", ""))
        for name in ("id", "timestamp", "signature"))
    if not re.fullmatch(r"[!-\-/-~]{1,256}", id):
        raise Rejection("webhook-id", "missing, or not visible ASCII without dots")
    if not re.fullmatch("[0-9]{1,12}", stamp):
        raise Rejection("webhook-timestamp", "missing, or not seconds since 1970")
    if abs((time.time() if now is None else now) - int(stamp)) > WEBHOOK_TOLERANCE:
        raise Rejection("webhook-timestamp", f"more than {WEBHOOK_TOLERANCE} s from now")
    try:
        publics = [ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(
            key[5:] if key.startswith("whpk_") else "", validate=True)) for key in keys]
    except ValueError:
        raise Rejection("keys", "not each is whpk_ and 32 bytes in base64") from None
    # A rotation has two. Anybody can send very many, each of which costs a check.
    entries = [entry[4:] for entry in listed.split(" ")[:WEBHOOK_SIGNATURES]
               if re.fullmatch("v1a,[A-Za-z0-9+/]{86}==", entry)]
    content = f"{id}.{stamp}.".encode() + body
    if not any(_is_signed(key, base64.b64decode(entry), content)
               for key in publics for entry in entries):
        raise Rejection("webhook-signature", "no v1a signature by one of the keys")
    document = _object(body)
    if "notifications" not in document and document.get("app") != app:
        raise Rejection("app", f"a question for another app, not {app}")
    return id, document


def _public(jwk):
    """The algorithm and the key; None if it is for something else."""
    try:
        kind = jwk["kty"], jwk["crv"]
        if kind == ("OKP", "Ed25519"):
            made = "EdDSA", ed25519.Ed25519PublicKey.from_public_bytes(_bytes(jwk["x"]))
        elif kind == ("EC", "P-256"):
            point = b"\4" + _bytes(jwk["x"]) + _bytes(jwk["y"])
            made = "ES256", ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        else:
            return None
    except (KeyError, TypeError, ValueError):
        return None
    is_for = isinstance(jwk.get("kid"), str), jwk.get("alg", made[0]), jwk.get("use", "sig")
    return made if is_for == (True, made[0], "sig") else None


def _is_signed(key, signature, data):
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, data)
        elif len(signature) != 64:
            return False
        else:
            r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
            key.verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


def _checked(field, text):
    if not re.fullmatch(r"[A-Za-z0-9._~-]{1,128}", text):
        raise Rejection(field, "not 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
    return text


def _base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text):
    """What base64url without padding stands for. A text that encodes otherwise is not accepted."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (TypeError, ValueError):
        data = None
    if data is None or _base64url(data) != text:
        raise Rejection("form", "not strict base64url")
    return data


def _object(data):
    if (value := _parsed(data)) is None:
        raise Rejection("form", "not a JSON object")
    return value


def _parsed(data):
    """The JSON object that a text is, or None."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
