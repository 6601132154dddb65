"""A backend that posts changes, and clients that verify notifications; for the examples beside it.

The environment has APP, such as https://gateway.example/v1/apps/com.example.stocks; BACKEND, a token;
CA, the gateway's authority, if the system does not trust it; and ISSUER, the gateway's publicURL, if
it differs from the origin of APP. Needs joserfc, from PyPI.
"""
import email.utils
import functools
import http.client
import json
import os
import pathlib
import random
import ssl
import threading
import time
import traceback
import urllib.parse
import uuid
import warnings

from joserfc import jws
from joserfc.jwk import KeySet

APP, BACKEND = urllib.parse.urlsplit(os.environ["APP"]), os.environ["BACKEND"]
ISSUER = os.environ.get("ISSUER", f"{APP.scheme}://{APP.netloc}")
TLS = ssl.create_default_context(cafile=os.environ.get("CA"))
EVENTS_PER_POST = 1_000  # limits.postEvents of the gateway.

# Notifications have the name of the algorithm that every library knows; newer ones prefer `Ed25519`.
warnings.filterwarnings("ignore", "EdDSA is deprecated")

own = threading.local()  # A kept connection of each thread.
keys = {}  # Those that sign notifications, by id.


def connect(timeout):
    return http.client.HTTPSConnection(APP.hostname, APP.port, context=TLS, timeout=timeout)


def beside(function, *arguments):
    """Runs a function in a thread; its failure ends the program."""
    def run():
        try:
            function(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    threading.Thread(target=run, daemon=True).start()


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what}: {got}, not {wanted}")


def server_time(answer):
    """Notifications expire by the server's clock, not by the device's."""
    return email.utils.parsedate_to_datetime(answer.headers["Date"]).timestamp()


def request(method, path, body=None, kind="application/json", token=BACKEND):
    """Returns the answer and its document.

    Repeats the request while the gateway is away or busy: everything asked here may arrive twice.
    """
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    fields = {"Authorization": f"Bearer {token}", **({"Content-Type": kind} if data else {})}
    for wait in (1, 2, 4, 8, 16, None):
        own.connection = getattr(own, "connection", None) or connect(30)
        try:
            own.connection.request(method, path, data, fields)
            answer = own.connection.getresponse()
            text = answer.read()
            if answer.status < 400:
                return answer, json.loads(text) if text else None
            failure, is_final = f"{answer.status} {text.decode()}", answer.status < 429
            pause = float(answer.headers.get("Retry-After", 0))
        except (OSError, http.client.HTTPException) as error:
            own.connection.close()  # The next request opens it again.
            failure, is_final, pause = error, False, 0
        if is_final or wait is None:
            raise SystemExit(f"{method} {path}: {failure}")
        time.sleep(max(wait, pause))


def ask(method, path, body=None, **how):
    return request(method, APP.path + path, body, **how)[1]


def put_catalog(example):
    """Puts the catalog that lies beside an example in force."""
    catalog = pathlib.Path(example).with_suffix(".yaml").read_bytes()
    ask("PUT", "/catalog", catalog, kind="application/yaml")


def events(source, changes):
    """Changes with the ids by which the gateway knows an event that comes again: made once."""
    return [{"specversion": "1.0", "type": "change", "source": source, "id": str(uuid.uuid4()),
             "data": change} for change in changes]


def post(batch):
    """Posts at most EVENTS_PER_POST events; returns when they are on the gateway's disk."""
    return ask("POST", "/changes", batch, kind="application/cloudevents-batch+json")


@functools.lru_cache(maxsize=64)  # All clients that a change concerns get the same bytes.
def signed(text):
    header = jws.extract_compact(text.encode()).headers()
    if header["kid"] not in keys:
        published = request("GET", "/.well-known/jwks.json")[1]
        keys.update((key["kid"], key) for key in published["keys"])
    key = KeySet.import_key_set({"keys": [keys[header["kid"]]]})
    claims = json.loads(jws.deserialize_compact(text, key, ["EdDSA", "ES256"]).payload)
    if header.get("typ", "").lower() != "timeline-reload+jwt":
        raise ValueError(f"typ {header.get('typ')}")
    expected = (ISSUER, APP.path.rsplit("/", 1)[1])
    if (claims["iss"], claims["aud"]) != expected:
        raise ValueError("a notification of {iss} for {aud}, not of {} for {}".format(*expected, **claims))
    return claims


def verified(text, now):
    """Returns the claims of a notification; an error if it is not the gateway's, or too old."""
    claims = signed(text)
    if claims["exp"] < now - 5:
        raise ValueError(f"a notification expired {now - claims['exp']:.0f} s ago")
    return claims


def concerns(claims, widget):
    """Whether a notification makes a widget stale."""
    def fits(listed, value):
        values = value if isinstance(value, list) else [value]
        return isinstance(listed, (list, dict)) or listed in values

    return claims.get("all", False) or any(
        entry["kind"] == widget["kind"] and all(
            fits(listed, widget["parameters"].get(name))
            for name, listed in entry.get("parameters", {}).items())
        for entry in claims.get("reload", []))


def widget(kind, family="systemSmall", **parameters):
    return {"kind": kind, "family": family, "parameters": parameters, "count": 1}


class Client:
    """An installation of the app, which the backend registers. All its widgets are built then."""

    def __init__(self, name, widgets, delivery=({"type": "stream"},)):
        self.name, self.widgets = name, widgets
        self.opened, self.is_resumed = threading.Event(), False
        self.cursor = ask("PUT", f"/clients/{name}", {
            "platform": "iOS", "osVersion": "26.1", "attributes": {"example": "yes"},
            "widgets": widgets, "delivery": delivery})["cursor"]

    @staticmethod
    def remove_all():
        """Removes the clients of earlier runs."""
        ask("DELETE", "/clients?attribute=example:yes")

    @functools.cached_property
    def token(self):
        return ask("POST", "/tokens", {"sub": self.name})["token"]

    @property
    def reloads(self):
        return f"{APP.path}/clients/{self.name}/reloads"

    def poll(self):
        """Returns the widgets that became stale since the last poll."""
        answer, document = request("GET", f"{self.reloads}?since={self.cursor}", token=self.token)
        told = [verified(text, server_time(answer)) for text in document["notifications"]]
        self.cursor = document["cursor"]
        return [one for one in self.widgets if any(concerns(claims, one) for claims in told)]

    def follow(self):
        """Yields the claims of notifications from a stream, which is resumed whenever it ends."""
        failures = 0
        while True:
            stream = connect(45)  # Three heartbeats.
            try:
                stream.request("GET", self.reloads, headers={
                    "Authorization": f"Bearer {self.token}", "Accept": "text/event-stream",
                    "Last-Event-ID": self.cursor})
                answer = stream.getresponse()
                if answer.status != 200:
                    raise http.client.HTTPException(f"{answer.status} {answer.read().decode()}")
                begun, skew = time.monotonic(), server_time(answer)
                self.opened.set()
                block = {}
                for line in answer:
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    if name:
                        block[name] = value
                        continue
                    if "data" in block:
                        yield verified(block["data"], skew + time.monotonic() - begun)
                    # Whoever iterates has rebuilt what came before.
                    self.cursor = block.get("id", self.cursor)
                    block, failures = {}, 0
            except (OSError, http.client.HTTPException) as error:
                print(f"{self.name}: the stream failed: {error}")
            finally:
                stream.close()
            time.sleep(random.uniform(0, min(60, 2 ** failures)))
            failures, self.is_resumed = failures + 1, True
