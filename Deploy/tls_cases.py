"""TLS 1.3 records (RFC 8446) that Deploy/check-protocols sends on a live event stream.

The handshake and the keys are tlslite-ng's; the records are put together here, so that they can be
what no library would send. Each case ends with the alert that the RFC asks for, or with the proof
that the stream is alive: a change that is posted then still arrives on it.
"""
import socket

from tlslite.api import HandshakeSettings, TLSConnection
from tlslite.errors import TLSAbruptCloseError

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA, HEARTBEAT = 20, 21, 22, 23, 24

# Alerts, section 6.
CLOSE_NOTIFY, UNEXPECTED_MESSAGE, BAD_RECORD_MAC, RECORD_OVERFLOW = 0, 10, 20, 22
ILLEGAL_PARAMETER, DECODE_ERROR, INTERNAL_ERROR, USER_CANCELED = 47, 50, 80, 90
WARNING, FATAL = 1, 2

# Handshake messages, section 4.
CLIENT_HELLO, NEW_SESSION_TICKET, FINISHED, KEY_UPDATE = 1, 4, 20, 24
CONTENT_MAX = 1 << 14


def message(kind, body=b""):
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


class EventStream:
    """An event stream over TLS 1.3 whose records are made by hand."""

    def __init__(self, port, target, token, timeout):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = self.connection = TLSConnection(self.socket)
        settings = HandshakeSettings()
        settings.minVersion = settings.maxVersion = (3, 4)
        connection.handshakeClientCert(settings=settings, serverName="localhost")
        self.layer, self.text, self.alerts = connection._recordLayer, b"", []
        self.is_closed, self.key_updates = False, 0
        self.send(self.sealed(
            f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            "Accept: text/event-stream\r\n\r\n".encode()))
        self.until("the head of the answer", lambda: b"\r\n\r\n" in self.text)
        if not self.text.startswith(b"HTTP/1.1 200 "):
            raise AssertionError(f"the stream was refused: {self.text[:200]}")

    # MARK: Sending

    def sealed(self, content, kind=DATA, padding=0, version=(3, 3)):
        """A protected record with a valid tag."""
        return self.protected(content + bytes([kind]) + bytes(padding), version)

    def protected(self, inner, version=(3, 3)):
        """A record of any inner plaintext, under this version in its header."""
        records = self.layer._recordSocket
        usual, records.version = records.version, version
        try:
            return record(DATA, self.layer._encryptThenSeal(bytearray(inner), DATA), version)
        finally:
            records.version = usual

    def send(self, content):
        try:
            self.socket.sendall(content)
        except OSError:
            # The gateway has ended the connection; what it said is still to be read.
            pass

    def renew_sending_keys(self):
        session = self.connection.session
        session.cl_app_secret, session.sr_app_secret = self.layer.calcTLS1_3KeyUpdate_reciever(
            session.cipherSuite, session.cl_app_secret, session.sr_app_secret)

    # MARK: Receiving

    def read(self):
        """Reads one record; what it holds is noted."""
        try:
            for result in self.layer.recvRecord():
                if result not in (0, 1):
                    break
        except (TLSAbruptCloseError, ConnectionError):
            self.is_closed = True
            return
        header, parser = result
        if header.type == DATA:
            self.text += bytes(parser.bytes)
        elif header.type == ALERT:
            self.alerts.append(bytes(parser.bytes))
        elif header.type == HANDSHAKE and parser.bytes[0] == KEY_UPDATE:
            self.key_updates += 1
            session = self.connection.session
            session.cl_app_secret, session.sr_app_secret = self.layer.calcTLS1_3KeyUpdate_sender(
                session.cipherSuite, session.cl_app_secret, session.sr_app_secret)

    def until(self, wanted, is_it):
        while not is_it():
            if self.is_closed or self.alerts:
                raise AssertionError(f"{self.said()} instead of {wanted}")
            try:
                self.read()
            except TimeoutError:
                raise AssertionError(f"{wanted} did not come") from None

    def said(self):
        alerts = ", ".join(f"alert {list(alert)}" for alert in self.alerts)
        return alerts or ("the end" if self.is_closed else "nothing")

    def read_to_the_end(self):
        while not self.is_closed:
            try:
                self.read()
            except TimeoutError:
                raise AssertionError(f"{self.said()}, and the connection stays open") from None

    def close(self):
        self.socket.close()


def record(kind, body, version=(3, 3)):
    return bytes([kind, *version]) + len(body).to_bytes(2, "big") + bytes(body)


# MARK: What is expected


def alerted(alert, level=FATAL):
    """This alert, and the end."""

    def expect(stream, _):
        stream.read_to_the_end()
        if stream.alerts != [bytes([level, alert])]:
            raise AssertionError(f"{stream.said()} and not alert {[level, alert]}")

    return expect


def ended_without_a_word(stream, _):
    stream.read_to_the_end()
    if stream.alerts:
        raise AssertionError(f"{stream.said()} and not the end alone")


def alive(stream, post):
    """A change that is posted now still arrives."""
    before = stream.text.count(b"\ndata: ")
    post()
    stream.until("a change", lambda: stream.text.count(b"\ndata: ") > before)


def key_update_answered(stream, post):
    """The gateway renews its keys as well, and what it sends then can be opened."""
    stream.until("an answer to KeyUpdate", lambda: stream.key_updates == 1)
    alive(stream, post)


# MARK: Cases


def cases():
    """Yields (name, title, what is sent, what is expected); what is sent is a function of the
    stream."""

    def sends(content, kind=DATA, padding=0):
        return lambda stream: stream.send(stream.sealed(content, kind, padding))

    def sends_plain(kind, body):
        return lambda stream: stream.send(record(kind, body))

    def handshake(*fragments):
        return lambda stream: stream.send(
            b"".join(stream.sealed(fragment, HANDSHAKE) for fragment in fragments))

    def updates(request, *pieces):
        """KeyUpdate in one record or more, after which the next keys are used."""

        def send(stream):
            handshake(*(pieces or [message(KEY_UPDATE, bytes([request]))]))(stream)
            stream.renew_sending_keys()
            stream.send(stream.sealed(b"under the next keys"))

        return send

    def keeps_old_keys(stream):
        handshake(message(KEY_UPDATE, b"\0"))(stream)
        stream.send(stream.sealed(b"under the old keys"))

    def interleaved(stream):
        update = message(KEY_UPDATE, b"\0")
        stream.send(
            stream.sealed(update[:2], HANDSHAKE) + stream.sealed(b"data") +
            stream.sealed(update[2:], HANDSHAKE))

    def with_bad_tag(stream):
        whole = bytearray(stream.sealed(b"data"))
        whole[-1] ^= 1
        stream.send(whole)

    def with_changed_header(stream):
        whole = bytearray(stream.sealed(b"data"))
        whole[2] = 1
        stream.send(whole)

    def after_goodbye(stream):
        stream.send(
            stream.sealed(bytes([WARNING, CLOSE_NOTIFY]), ALERT) + stream.sealed(b"data"))

    update = message(KEY_UPDATE, b"\0")
    unexpected = alerted(UNEXPECTED_MESSAGE)
    goodbye = alerted(CLOSE_NOTIFY, WARNING)
    listed = [
        ("KeyUpdate that asks for nothing", updates(0), alive),
        ("KeyUpdate that asks for one", updates(1), key_update_answered),
        ("KeyUpdate that asks for 2", handshake(message(KEY_UPDATE, b"\2")),
         alerted(ILLEGAL_PARAMETER)),
        ("KeyUpdate of 2 bytes", handshake(message(KEY_UPDATE, b"\0\0")), alerted(DECODE_ERROR)),
        ("KeyUpdate of no bytes", handshake(message(KEY_UPDATE)), alerted(DECODE_ERROR)),
        ("two KeyUpdate in one record", handshake(update * 2), unexpected),
        ("KeyUpdate in two records", updates(0, update[:2], update[2:]), alive),
        ("KeyUpdate with data in between", interleaved, unexpected),
        ("KeyUpdate, and then the old keys", keeps_old_keys, alerted(BAD_RECORD_MAC)),
        ("an empty handshake record", sends(b"", HANDSHAKE), unexpected),
        ("ClientHello", handshake(message(CLIENT_HELLO, bytes(64))), unexpected),
        ("NewSessionTicket", handshake(message(NEW_SESSION_TICKET, bytes(64))), unexpected),
        ("Finished", handshake(message(FINISHED, bytes(32))), unexpected),
        ("an empty alert", sends(b"", ALERT), unexpected),
        ("an alert of 1 byte", sends(b"\2", ALERT), alerted(DECODE_ERROR)),
        ("an alert of 3 bytes", sends(bytes([FATAL, INTERNAL_ERROR, 0]), ALERT),
         alerted(DECODE_ERROR)),
        ("user_canceled", sends(bytes([WARNING, USER_CANCELED]), ALERT), alive),
        ("a fatal alert", sends(bytes([FATAL, INTERNAL_ERROR]), ALERT), ended_without_a_word),
        ("close_notify", sends(bytes([WARNING, CLOSE_NOTIFY]), ALERT), goodbye),
        ("data after close_notify", after_goodbye, goodbye),
        ("empty data", sends(b""), alive),
        ("2^14 bytes of data", sends(bytes(CONTENT_MAX)), alive),
        ("2^14 + 1 bytes of data", sends(bytes(CONTENT_MAX + 1)), alerted(RECORD_OVERFLOW)),
        ("padding up to 2^14 bytes", sends(b"x", padding=CONTENT_MAX - 1), alive),
        ("padding up to 2^14 + 1 bytes", sends(b"x", padding=CONTENT_MAX),
         alerted(RECORD_OVERFLOW)),
        ("zeros alone", lambda stream: stream.send(stream.protected(bytes(32))), unexpected),
        ("change_cipher_spec, protected", sends(b"\1", CHANGE_CIPHER_SPEC), unexpected),
        ("heartbeat, protected", sends(b"\1\0\0", HEARTBEAT), unexpected),
        ("type 255, protected", sends(b"x", 255), unexpected),
        ("an invalid tag", with_bad_tag, alerted(BAD_RECORD_MAC)),
        ("plain change_cipher_spec", sends_plain(CHANGE_CIPHER_SPEC, b"\1"), unexpected),
        ("a plain alert", sends_plain(ALERT, bytes([FATAL, INTERNAL_ERROR])), unexpected),
        ("a plain handshake record", sends_plain(HANDSHAKE, update), unexpected),
        ("a record of 0 bytes", sends_plain(DATA, b""), alerted(BAD_RECORD_MAC)),
        ("a record of 16 bytes", sends_plain(DATA, bytes(16)), alerted(BAD_RECORD_MAC)),
        ("a record of 2^14 + 257 bytes", sends_plain(DATA, bytes(CONTENT_MAX + 257)),
         alerted(RECORD_OVERFLOW)),
        ("version 3.1 in the header",
         lambda stream: stream.send(stream.sealed(b"data", version=(3, 1))), alive),
        ("a header that was changed", with_changed_header, alerted(BAD_RECORD_MAC)),
    ]
    for number, (title, send, expect) in enumerate(listed, 1):
        yield f"tls {number}", title, send, expect


def planted():
    """Yields (title, how it fails, what is sent, what is expected) of cases that a right server
    must fail."""
    real = {title: (send, expect) for _, title, send, expect in cases()}
    for title, pattern, sent, expected in [
            ("another alert", r"alert \[2, 47\] and not alert \[2, 50\]",
             "KeyUpdate that asks for 2", "KeyUpdate of 2 bytes"),
            ("an alert that does not come", "nothing, and the connection stays open",
             "empty data", "an invalid tag"),
            ("a stream that is not alive", r"alert \[2, 20\] instead of a change",
             "an invalid tag", "empty data"),
            ("keys that are not renewed", "an answer to KeyUpdate did not come",
             "KeyUpdate that asks for nothing", "KeyUpdate that asks for one"),
            ("an alert where none is", r"alert \[1, 0\] and not the end alone",
             "close_notify", "a fatal alert"),
            ("an error in place of close_notify", r"alert \[2, 10\] and not alert \[1, 0\]",
             "Finished", "close_notify")]:
        yield title, pattern, real[sent][0], real[expected][1]
