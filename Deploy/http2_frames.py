"""HTTP/2 frames (RFC 9113) as bytes, valid or not, and a connection that reads a server's."""
import socket
import struct
import time

import hpack
import hyperframe.frame

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, \
    CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20

# Error codes, section 7.
CODES = NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, \
    STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, \
    CONNECT_ERROR, ENHANCE_YOUR_CALM = range(12)

# Settings, section 6.5.2.
ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 2, 3, 4, 5


# MARK: Bytes to send


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def block(fields):
    """A field block that any decoder can read: a new encoder refers to nothing sent before."""
    return hpack.Encoder().encode(fields)


def data(stream, content=b"test", flags=END_STREAM):
    return frame(DATA, flags, stream, content)


def headers(stream, fields, flags=END_STREAM | END_HEADERS):
    return frame(HEADERS, flags, stream, block(fields))


def continuation(stream, fields=(("x-dummy", "more"),), flags=END_HEADERS):
    return frame(CONTINUATION, flags, stream, block(fields))


def priority(stream, on=0, weight=255, exclusive=False):
    return frame(PRIORITY, 0, stream, priority_fields(on, weight, exclusive))


def priority_fields(on=0, weight=255, exclusive=False):
    return struct.pack(">IB", on | (0x80000000 if exclusive else 0), weight)


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def settings(*pairs, flags=0, stream=0):
    payload = b"".join(struct.pack(">HI", name, value) for name, value in pairs)
    return frame(SETTINGS, flags, stream, payload)


def ping(content=b"protocol", flags=0, stream=0):
    return frame(PING, flags, stream, content)


def go_away(code=NO_ERROR, stream=0):
    return frame(GOAWAY, 0, stream, struct.pack(">II", 0, code))


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


# MARK: A connection


class Connection:
    """One TLS connection with ALPN h2, and every frame that came on it."""

    def __init__(self, port, tls, timeout):
        self.timeout = timeout
        raw = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = tls.wrap_socket(raw, server_hostname="localhost")
        if self.socket.selected_alpn_protocol() != "h2":
            raise AssertionError("ALPN h2 was not chosen")
        self.decoder, self.buffer, self.came, self.is_closed = hpack.Decoder(), b"", [], False
        self.ended, self.maximum_streams = set(), None

    def send(self, content):
        try:
            self.socket.sendall(content)
        except OSError:
            # The peer has closed; what it said before that is still to be read.
            pass

    def shake_hands(self):
        """Sends the preface, and reads the server's, and its acknowledgment."""
        self.send(PREFACE + settings())
        first = self.next("the server's preface")
        if not isinstance(first, hyperframe.frame.SettingsFrame) or "ACK" in first.flags:
            raise AssertionError(f"the first frame is {first!r}")
        self.maximum_streams = first.settings.get(MAX_CONCURRENT_STREAMS)
        self.send(settings(flags=ACK))
        self.wait("the acknowledgment of the preface", is_acknowledgment)

    def next(self, wanted):
        """The next frame, or None at the end of the connection."""
        end = time.monotonic() + self.timeout
        while True:
            if len(self.buffer) >= 9:
                one, length = hyperframe.frame.Frame.parse_frame_header(
                    memoryview(self.buffer)[:9])
                if len(self.buffer) >= 9 + length:
                    one.parse_body(memoryview(self.buffer)[9:9 + length])
                    self.buffer = self.buffer[9 + length:]
                    self.note(one)
                    return one
            left = end - time.monotonic()
            if self.is_closed:
                return None
            if left <= 0:
                raise AssertionError(f"not within {self.timeout} s: {wanted}; came: {self.said()}")
            self.socket.settimeout(left)
            try:
                more = self.socket.recv(65_536)
            except TimeoutError:
                continue
            except OSError:
                more = b""
            self.buffer += more
            self.is_closed = not more

    def note(self, one):
        if isinstance(one, hyperframe.frame.HeadersFrame):
            if "END_HEADERS" not in one.flags:
                raise AssertionError("a field block of the server in several frames")
            one.fields = dict(self.decoder.decode(one.data))
        if "END_STREAM" in one.flags:
            self.ended.add(one.stream_id)
        self.came.append(one)

    def wait(self, wanted, is_it):
        """Reads until a frame that `is_it`; a GOAWAY with an error, or the end, is a failure."""
        while True:
            one = self.next(wanted)
            if one is None:
                raise AssertionError(
                    f"the connection ended before {wanted}; came: {self.said()}")
            if is_it(one):
                return one
            if isinstance(one, hyperframe.frame.GoAwayFrame) and one.error_code != NO_ERROR:
                raise AssertionError(
                    f"the connection was given up before {wanted}: {self.said()}")

    def said(self):
        """What came, in short."""
        words = []
        for one in self.came:
            name = type(one).__name__.removesuffix("Frame")
            if hasattr(one, "fields"):
                name += f" {one.fields.get(':status')}"
            if hasattr(one, "error_code"):
                name += f" error {one.error_code}"
            words.append(f"{name}/{one.stream_id}" + "!" * ("END_STREAM" in one.flags))
        return ", ".join(words + ["the end"] * self.is_closed) or "nothing"

    def close(self):
        self.socket.close()


def is_acknowledgment(one):
    return isinstance(one, hyperframe.frame.SettingsFrame) and "ACK" in one.flags
