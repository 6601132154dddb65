"""A double of APNs for Live Activities, made from Apple's documents: it shares no code with the simulator.

A request that breaks a documented rule gets the documented answer and a line of JSON in the report, with
the rule and its source. What APNs accepts though a device ignores it is answered 200, and reported, too.
Prints "ready URL", on SIGTERM its counts as JSON; exits with 0 if the report is empty.
"""
import argparse
import asyncio
import base64
import contextlib
import json
import random
import re
import signal
import ssl
import time
import uuid
from collections import Counter, defaultdict

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from h2 import config, connection, errors, events, exceptions, settings

ARTICLES = {
    "SND": "Sending notification requests to APNs", "RSP": "Handling notification responses from APNs",
    "ERR": "Handling error responses from Apple Push Notification service",
    "TOK": "Establishing a token-based connection to APNs", "CON": "Establishing a connection to APNs",
    "BRP": "Sending broadcast push notification requests to APNs",
    "LAP": "Starting and updating Live Activities with ActivityKit push notifications",
}
# What `aps` of a Live Activity, and of its start, may have.
ACTIVITY_KEYS = {
    "timestamp", "event", "content-state", "stale-date", "dismissal-date", "alert", "relevance-score"}
START_KEYS = ACTIVITY_KEYS | {"attributes-type", "attributes", "input-push-channel", "input-push-token"}
PAYLOAD_MAX, BROADCAST_MAX, REPORT_MAX = 4096, 5120, 10_000
STREAMS, STREAMS_MAX = settings.SettingCodes.MAX_CONCURRENT_STREAMS, 100
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
BASE64 = re.compile(r"(?=.)([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
BEARER = re.compile(r"(?i:bearer) ((?:[A-Za-z0-9_-]+\.){2}[A-Za-z0-9_-]+)")
BAD_TOKEN = "403 InvalidProviderToken"
FAULTS = ["429 TooManyRequests", "500 InternalServerError", "503 ServiceUnavailable", "dropped"]


class Refusal(Exception):
    """An answer other than success. Without a rule, the client has done nothing wrong."""

    def __init__(self, answer, rule=None, source=None, **members):
        super().__init__(answer)
        status, reason = answer.split(" ")
        self.answer = int(status), {"content-type": "application/json"}, {"reason": reason, **members}
        self.rule, self.source = rule, source


def need(holds, answer, rule, source):
    """Refuses the request if the rule does not hold."""
    if not holds:
        raise Refusal(answer, rule, source)


class Request:
    def __init__(self, fields):
        self.fields, self.headers, self.began = fields, dict(fields), time.monotonic()
        # What it counts as, and the device token in lower case.
        self.body, self.size, self.kind, self.token = b"", 0, "liveactivity", None
        self.id_name = "apns-id" if self.headers[":path"].startswith("/3/") else "apns-request-id"
        self.id = self.headers.get(self.id_name, str(uuid.uuid4()))
        # Whether its answer is final, and when the client had it: it acknowledged the PING behind it.
        self.is_final, self.known = False, None
        # The rules that it breaks, with their sources, and what happens once it is accepted.
        self.broken, self.effect = [], lambda: None

    def expect(self, source, *rules):
        """Reports the request, and does not refuse it, if a rule does not hold."""
        self.broken += [(rule, source) for holds, rule in rules if not holds]

    def follows(self, final):
        """Whether the client knew a final answer when it sent this: it may have lost it."""
        return final.known is not None and self.began >= final.known

    def object(self):
        """Returns the body as a JSON object, or None."""
        try:
            document = json.loads(self.body.decode(), parse_constant=int)
        except (ValueError, RecursionError):
            return None
        return document if isinstance(document, dict) else None

    def aps(self):
        aps = (self.object() or {}).get("aps")
        return aps if isinstance(aps, dict) else {}


def is_seconds(value, least=1_000_000_000):
    """Whether it counts seconds since 1970: no milliseconds, no duration, not from 2001."""
    return type(value) in (int, float) and least <= value < 100_000_000_000


class Double:
    """What all connections share."""

    def __init__(self, options, key, report):
        self.options, self.key, self.report, self.bundle = options, key, report, options.bundle
        self.random, self.counts = random.Random(1), Counter(findings=0, connections=0)
        # By device token: whether it starts activities, when and at which push it died.
        self.starters, self.dead = {}, {}
        # By activity: the newest `timestamp` that was accepted, and the request that ended it.
        self.activities = defaultdict(lambda: (0, None))

    def find(self, rule, source, **members):
        self.counts["findings"] += 1
        line = {"at": round(time.time(), 3), "rule": rule, "source": ARTICLES.get(source, source)}
        if self.counts["findings"] <= REPORT_MAX:
            self.report.write(json.dumps(line | members) + "\n")

    def decide(self, request, seen):
        """Returns status, headers and document of the answer, or None if the connection is dropped."""
        answer, fault = (200, {}, None), None
        try:
            self.judge(request, seen)
            if self.random.random() * 100 < self.options.fault:
                fault = self.random.choice(FAULTS + ["410 Unregistered"] * bool(request.token))
                self.counts[f"fault {fault}"] += 1
            # Half of what is dropped was accepted, and the client cannot know.
            if not fault or (fault == "dropped" and self.random.random() < 0.5):
                request.effect()
                self.counts[f"accepted {request.kind}"] += 1
            if fault == "410 Unregistered":
                moment, request.is_final = int(time.time() * 1000), True
                self.dead[request.token] = moment, request
                raise Refusal(fault, timestamp=moment)
            if fault and fault != "dropped":
                raise Refusal(fault)
        except Refusal as refusal:
            answer = refusal.answer
            request.expect(refusal.source, (refusal.rule is None, refusal.rule))
            self.counts[f"answered {refusal}"] += 1
        shown = {name: value[:100] for name, value in request.fields
                 if name in (":method", ":path") or name.startswith("apns-")}
        for rule, source in request.broken:
            self.find(rule, source, status=answer[0], answer=answer[2], fault=fault, request=shown,
                      body=request.body[:300].decode("latin-1"))
        return None if fault == "dropped" else answer

    def judge(self, request, seen):
        """Raises a refusal, or adds to what the request breaks. seen: a connection's tokens, with `iat`."""
        headers, method, path = request.headers, request.headers[":method"], request.headers[":path"]
        device = re.fullmatch(r"/3/device(?:/([^/?]*))?", path)
        app = re.fullmatch(r"/4/broadcasts/apps/([^/?]+)", path)
        need(device or app, "404 BadPath", "a path is of a device or of a broadcast", "RSP")
        need(method == "POST", "405 MethodNotAllowed", "a push is a POST", "RSP")
        need(len(headers) == len(request.fields), "400 DuplicateHeaders", "no header is repeated", "RSP")
        self.check_provider_token(headers.get("authorization"), seen, time.time())
        need(UUID.fullmatch(request.id), "400 BadMessageId", "an id is a UUID in lower case", "SND")
        request.expect("SND", ("content-encoding" not in headers, "a payload is not compressed"))
        if device:
            self.push(request, (device[1] or "").lower())
        else:
            need(app[1] == self.bundle, "403 TopicMismatch", "a path names the app's bundle id", "ERR")
            self.publish(request)

    def check_provider_token(self, value, seen, now):
        need(value is not None, "403 MissingProviderToken", "a request has a provider token", "RSP")
        bearer = BEARER.fullmatch(value)
        need(bearer, BAD_TOKEN, "`authorization` is `bearer` and a JWT", "TOK")
        issued = seen.get(bearer[1]) or self.verify(bearer[1], seen)
        need(issued <= now, BAD_TOKEN, "`iat` is not in the future", "TOK")
        need(now - issued <= 3600, "403 ExpiredProviderToken", "`iat` is at most an hour ago", "TOK")
        need(bearer[1] in seen or not seen or issued - max(seen.values()) >= 1200,
             "429 TooManyProviderTokenUpdates", "a connection keeps a token for 20 minutes", "TOK")
        seen[bearer[1]] = issued

    def verify(self, token, seen):
        """Returns the `iat` of a provider token that the team's key signed."""
        text, _, signature = token.rpartition(".")
        try:
            head, claims = (json.loads(base64.urlsafe_b64decode(b64 + "==")) for b64 in text.split("."))
            algorithm, key, team, issued = head["alg"], head["kid"], claims["iss"], claims["iat"]
            r_and_s = base64.urlsafe_b64decode(signature + "==")
        except (ValueError, TypeError, KeyError, RecursionError):
            raise Refusal(BAD_TOKEN, "a token has `alg`, `kid`, `iss` and `iat`", "TOK") from None
        need(algorithm == "ES256", BAD_TOKEN, f"`alg` is ES256, not {algorithm}", "TOK")
        unrelated = "403 UnrelatedKeyIdInToken" if seen else BAD_TOKEN
        need(key == self.options.key_id, unrelated, f"`kid` is the team's key, not {key}", "TOK")
        need(team == self.options.team, BAD_TOKEN, f"`iss` is the team's id, not {team}", "TOK")
        need(is_seconds(issued), BAD_TOKEN, f"`iat` is in seconds since 1970, not {issued}", "TOK")
        need(len(r_and_s) == 64, BAD_TOKEN, "a signature is r and s, 64 bytes", "RFC 7518")
        numbers = (int.from_bytes(half, "big") for half in (r_and_s[:32], r_and_s[32:]))
        try:
            self.key.verify(
                utils.encode_dss_signature(*numbers), text.encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise Refusal(BAD_TOKEN, "the team's key signed the token", "TOK") from None
        return issued

    def push(self, request, token):
        topic, kind = request.headers.get("apns-topic"), request.headers.get("apns-push-type")
        need(topic is not None, "400 MissingTopic", "`apns-topic` is required with a token", "SND")
        need(kind == "liveactivity", "400 InvalidPushType", "a push is a liveactivity", "SND")
        reason = "BadTopic" if f"{topic}.".startswith(f"{self.bundle}.") else "TopicDisallowed"
        is_its = topic == f"{self.bundle}.push-type.liveactivity"
        need(is_its, f"400 {reason}", "`apns-topic` is the bundle id and the push type's suffix", "SND")
        self.check_common(request, PAYLOAD_MAX)
        need(token, "400 MissingDeviceToken", "a push names a device token", "RSP")
        need(re.fullmatch("([0-9a-f]{2})+", token), "400 BadDeviceToken", "a token is hex", "SND")
        request.token = token
        if token in self.dead:
            moment, final = self.dead[token]
            rule = "a token that had 410 gets no more pushes" if request.follows(final) else None
            raise Refusal("410 Unregistered", rule, "RSP", timestamp=moment)
        request.expect("SND", (request.object() is not None, "a payload is a JSON object"))
        self.check_activity(request, request.aps(), token)

    def check_common(self, request, most):
        headers = {"apns-priority": "10", "apns-expiration": "0", **request.headers}
        priority, expiration = headers["apns-priority"], headers["apns-expiration"]
        is_right = re.fullmatch("[0-9]{1,18}", expiration)
        need(is_right, "400 BadExpirationDate", "`apns-expiration` is a number", "SND")
        need(priority in ("10", "5", "1"), "400 BadPriority", "`apns-priority` is 10, 5 or 1", "SND")
        is_right = len(headers.get("apns-collapse-id", "")) <= 64
        need(is_right, "400 BadCollapseId", "`apns-collapse-id` has at most 64 bytes", "SND")
        is_right = int(expiration) == 0 or is_seconds(int(expiration))
        request.expect("SND", (is_right, "`apns-expiration` is in seconds since 1970"))
        request.expect("LAP", (priority != "1", "a Live Activity has 5 or 10"))
        need(request.size, "400 PayloadEmpty", "a push has a payload", "RSP")
        need(request.size <= most, "413 PayloadTooLarge", f"a payload has at most {most} bytes", "SND")

    def check_activity(self, request, aps, address):
        """address: a device token, or "channel ID"."""
        event, timestamp = aps.get("event"), aps.get("timestamp")
        is_start, is_broadcast = event == "start", address.startswith("channel ")
        activity = self.check_start(request, aps, address) if is_start else address
        newest, ended = self.activities[activity]
        moment = timestamp if is_seconds(timestamp) else newest
        is_of_kind = is_broadcast or self.starters.setdefault(address, is_start) == is_start
        request.kind = f"{request.kind} {event}"
        request.expect(
            "LAP", (event in ("start", "update", "end"), "`event` is start, update or end"),
            ("content-state" in aps, "a Live Activity has `content-state`"),
            (is_seconds(timestamp), "`timestamp` is in seconds since 1970"),
            ("stale-date" not in aps or is_seconds(aps["stale-date"]), "`stale-date` is in seconds"),
            # It may be any in the past.
            (is_seconds(aps.get("dismissal-date", 0), least=0), "`dismissal-date` is in seconds"),
            (type(aps.get("relevance-score", 0)) in (int, float), "`relevance-score` is a number"),
            (aps.keys() <= (START_KEYS if is_start else ACTIVITY_KEYS), "`aps` has Apple's keys alone"),
            (not (is_start and is_broadcast), "a broadcast does not start an activity"),
            (is_of_kind, "push-to-start tokens get start, tokens of activities update and end"),
            (moment >= newest, f"`timestamp` does not go back from {newest}"),
            (not (ended and request.follows(ended)), "nothing comes after the end of an activity"))
        request.is_final = event == "end"
        after = max(newest, moment), request if request.is_final else ended
        request.effect = lambda: self.activities.update({activity: after})

    def check_start(self, request, aps, address):
        """Returns a name of the activity that is started: one token starts many."""
        kind, attributes = aps.get("attributes-type"), aps.get("attributes")
        token, channel = aps.get("input-push-token", 1), str(aps.get("input-push-channel"))
        request.expect(
            "LAP", (kind and isinstance(kind, str), "a start has `attributes-type`"),
            (isinstance(attributes, dict), "a start has an object `attributes`"),
            (aps.get("alert"), "a start has an `alert`"),
            (json.dumps(token) == "1", "`input-push-token` is the number 1"),
            (BASE64.fullmatch(channel) or "input-push-channel" not in aps,
             "`input-push-channel` is a channel"),
            (not {"input-push-channel", "input-push-token"} <= aps.keys(), "a token or a channel"))
        # Other activities of the channel may have ended before.
        self.activities[f"channel {channel}"] = self.activities[f"channel {channel}"][0], None
        return f"{address} {json.dumps([kind, attributes], sort_keys=True)}"

    def publish(self, request):
        """Every channel exists: it can also be made in Apple's console."""
        headers, request.kind = request.headers, "broadcast"
        channel = headers.get("apns-channel-id", "")
        need(channel, "400 MissingChannelId", "`apns-channel-id` is required", "ERR")
        need(BASE64.fullmatch(channel), "400 BadChannelId", "`apns-channel-id` is base64", "ERR")
        kind = headers.get("apns-push-type", "").lower()  # Apple writes it in three ways.
        need(kind, "400 MissingPushType", "a broadcast has `apns-push-type`", "ERR")
        need(kind == "liveactivity", "400 InvalidPushType", "a broadcast is a liveactivity", "ERR")
        request.expect("BRP", ("apns-expiration" in headers, "a broadcast has `apns-expiration`"),
                       ("apns-priority" in headers, "a broadcast has `apns-priority`"),
                       ("apns-topic" not in headers, "a broadcast has no `apns-topic`"))
        self.check_common(request, BROADCAST_MAX)
        self.check_activity(request, request.aps(), f"channel {channel}")


class Connection:
    def __init__(self, double, reader, writer):
        self.double, self.reader, self.writer = double, reader, writer
        self.http = connection.H2Connection(config.H2Configuration(False, "latin-1"))
        # Requests by stream, provider tokens that were accepted, answered ones whose PING is out.
        self.requests, self.seen, self.pings = {}, {}, {}
        # Whether more than one stream is allowed, and whether the client knows.
        self.is_raised, self.is_proven = False, False

    async def serve(self):
        self.double.counts["connections"] += 1
        try:
            # One stream is announced. More are refused here, and not by h2, which ends the connection.
            self.http.local_settings = settings.Settings(False, {STREAMS: 1})
            self.http.initiate_connection()
            self.http.local_settings = settings.Settings(False, {STREAMS: STREAMS_MAX})
            self.writer.write(self.http.data_to_send())
            while data := await self.reader.read(65536):
                for event in self.http.receive_data(data):
                    self.handle(event)
                self.writer.write(self.http.data_to_send())
                await self.writer.drain()
        except (Exception, asyncio.CancelledError) as error:
            if not isinstance(error, (OSError, asyncio.CancelledError)):
                self.double.find("a client speaks HTTP/2", "RFC 9113", error=repr(error))
            self.writer.write(self.http.data_to_send())
        self.writer.close()

    def handle(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, events.RequestReceived):
            if self.is_proven or not (self.requests or self.is_raised):
                self.requests[stream] = Request(event.headers)
            else:
                self.double.find("a connection has one stream until its first success", "CON")
                self.http.reset_stream(stream, errors.ErrorCodes.REFUSED_STREAM)
        elif isinstance(event, events.DataReceived):
            self.http.acknowledge_received_data(event.flow_controlled_length, stream)
            if request := self.requests.get(stream):
                request.size += len(event.data)
                request.body += event.data[:BROADCAST_MAX + 1 - len(request.body)]
        elif isinstance(event, events.StreamEnded) and stream in self.requests:
            self.answer(stream, self.requests.pop(stream))
        elif isinstance(event, events.StreamReset):
            self.requests.pop(stream, None)
        elif isinstance(event, events.PingAckReceived):
            self.pings.pop(int.from_bytes(event.ping_data, "big")).known = time.monotonic()
        elif isinstance(event, events.SettingsAcknowledged) and event.changed_settings:
            self.is_proven = True

    def answer(self, stream, request):
        answer = self.double.decide(request, self.seen)
        if answer is None:
            return self.writer.transport.abort()
        status, fields, document = answer
        if status < 300 and not self.is_raised:
            # Before the answer, so that a client that acts on the answer has acknowledged it.
            self.http.update_settings({STREAMS: STREAMS_MAX})
            self.is_raised = True
        body = json.dumps(document).encode() if document else b""
        fields = {":status": str(status), request.id_name: request.id, **fields}
        # The client may have given the request up.
        with contextlib.suppress(exceptions.StreamClosedError):
            self.http.send_headers(stream, fields.items(), end_stream=not body)
            if body:
                self.http.send_data(stream, body, end_stream=True)
            if request.is_final:
                self.pings[stream] = request
                self.http.ping(stream.to_bytes(8, "big"))


async def run(double, tls):
    """Serves until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    server = await asyncio.start_server(
        lambda *ends: Connection(double, *ends).serve(), "127.0.0.1", 0, ssl=tls)
    print(f"ready https://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await stopped.wait()


def main():
    parser = argparse.ArgumentParser(description="A double of APNs that judges its client.")
    for name in ("certificate", "key", "team", "key-id", "p8", "bundle", "report"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--fault", default=0.0, type=float, help="in percent of the answers")
    options = parser.parse_args()
    with open(options.p8, "rb") as file:
        key = serialization.load_pem_private_key(file.read(), None).public_key()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(options.certificate, options.key)
    tls.set_alpn_protocols(["h2"])
    with open(options.report, "w", buffering=1) as report:
        double = Double(options, key, report)
        asyncio.run(run(double, tls))
    print(json.dumps(double.counts), flush=True)
    raise SystemExit(1 if double.counts["findings"] else 0)


if __name__ == "__main__":
    main()
