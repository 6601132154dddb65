"""The cases of HTTP/2 (RFC 9113) and HPACK (RFC 7541) that Deploy/check-protocols runs.

They cover the list of h2spec, by its numbers: `generic` for what every server has to serve, `http2`
and `hpack` for what it has to refuse. Those of h2spec's cases that depend on who is faster are
arranged so that they do not: an answer that must not end is kept back by a window of 0, and a
request that must not be answered has a body that is not sent.
"""
import json
import time

import hyperframe.frame as frames
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH

from http2_frames import (
    ACK, COMPRESSION_ERROR, ENABLE_PUSH, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR, HEADERS, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE,
    NO_ERROR, PADDED, PRIORITY, PROTOCOL_ERROR, PUSH_PROMISE, REFUSED_STREAM, RST_STREAM,
    SETTINGS, STREAM_CLOSED, WINDOW_UPDATE, WITH_PRIORITY, block, continuation, data, frame,
    go_away, headers, is_acknowledgment, ping, priority, priority_fields, reset, settings,
    window_update)

KEYS = "/.well-known/jwks.json"
OTHER_ERROR = 0xff

# What is not as the RFC asks for, by the case's name: the reason, and what comes instead.
EXCEPTIONS = {
    "http2 5.1/6": (
        "swift-nio-http2 resets the stream, but with PROTOCOL_ERROR and not with STREAM_CLOSED: "
        "no client can tell the one from the other by what it has to do",
        lambda: refused(1, PROTOCOL_ERROR)),
}


# MARK: What is expected


def is_frame(kind, stream=None):
    return lambda one: isinstance(one, kind) and stream in (None, one.stream_id)


def fatal(*codes):
    """An error of the connection: GOAWAY with one of these codes, and then the end."""

    def expect(connection):
        wanted = f"GOAWAY with error {codes}"
        while True:
            one = connection.next(wanted)
            if one is None:
                raise AssertionError(
                    f"the connection ended without {wanted}; came: {connection.said()}")
            if isinstance(one, frames.GoAwayFrame) and one.error_code in codes:
                break
            if isinstance(one, frames.GoAwayFrame) and one.error_code != NO_ERROR:
                raise AssertionError(f"not {wanted}; came: {connection.said()}")
        closed(connection)

    return expect


def refused(stream, *codes):
    """An error of a stream, which may also be treated as one of the connection (5.4.1)."""

    def expect(connection):
        wanted = f"RST_STREAM of {stream} or GOAWAY with error {codes}"
        while True:
            one = connection.next(wanted)
            if one is None:
                raise AssertionError(
                    f"the connection ended without {wanted}; came: {connection.said()}")
            if isinstance(one, (frames.RstStreamFrame, frames.GoAwayFrame)):
                if one.stream_id in (0, stream) and one.error_code in codes:
                    return
                if one.error_code != NO_ERROR:
                    raise AssertionError(f"not {wanted}; came: {connection.said()}")

    return expect


def closed(connection):
    while connection.next("the end of the connection"):
        pass


def unharmed_or_closed(connection):
    """PING is answered, or the connection ends without an error."""
    while one := connection.next("an answer to PING, or the end of the connection"):
        if isinstance(one, frames.GoAwayFrame) and one.error_code != NO_ERROR:
            raise AssertionError(f"an error where none is: {connection.said()}")
        if isinstance(one, frames.PingFrame):
            return


def answered(status, stream=1):
    """A whole answer with this status."""

    def expect(connection):
        head = connection.wait(
            f"the answer of {stream}", is_frame(frames.HeadersFrame, stream))
        if head.fields.get(":status") != str(status):
            raise AssertionError(f"not answered {status}: {connection.said()}")
        while stream not in connection.ended:
            connection.wait(f"the end of {stream}", lambda one: stream in connection.ended)
        body = sum(
            len(one.data) for one in connection.came
            if isinstance(one, frames.DataFrame) and one.stream_id == stream)
        if int(head.fields.get("content-length", body)) != body and not expect.is_head:
            raise AssertionError(f"{body} bytes of a body of {head.fields['content-length']}")
        if body and expect.is_head:
            raise AssertionError("HEAD is answered with a body")

    expect.is_head = False
    return expect


def answered_without_body(status, stream=1):
    expect = answered(status, stream)
    expect.is_head = True
    return expect


def begun(connection):
    """The head of the answer on stream 1, whose body waits for a window."""
    connection.wait("the head of the answer", is_frame(frames.HeadersFrame, 1))


def piece(length):
    """A DATA frame of exactly this length."""

    def expect(connection):
        one = connection.wait("DATA", is_frame(frames.DataFrame, 1))
        if len(one.data) != length:
            raise AssertionError(f"DATA of {len(one.data)} bytes and not of {length}")

    return expect


def pong(content=b"protocol"):
    """An answer to PING with this content, and none with another before it."""

    def expect(connection):
        one = connection.wait("an answer to PING", is_frame(frames.PingFrame))
        if "ACK" not in one.flags or bytes(one.opaque_data) != content:
            raise AssertionError(f"not an answer with {content}: {one.opaque_data}")

    return expect


def acknowledged(connection):
    connection.wait("the acknowledgment of SETTINGS", is_acknowledgment)


# MARK: Cases


def cases(app, token):
    """Yields (name, title, steps): bytes to send and what is expected, in order. A case begins
    after both prefaces, unless its first step is None."""

    def request(method, path=KEYS, *more):
        return [
            (":method", method), (":scheme", "https"), (":path", path),
            (":authority", "localhost"), *more]

    event = json.dumps({
        "specversion": "1.0", "type": "changed", "source": "/protocols",
        "id": str(time.time_ns()),
        "data": {"entity": "GameStatus", "attributes": {"account": 1}}}).encode()
    post = request(
        "POST", f"/v1/apps/{app}/changes", ("authorization", f"Bearer {token}"),
        ("content-type", "application/cloudevents+json"))
    get, half = request("GET"), len(event) // 2
    fields = block(get)
    asks, opens = headers(1, get), headers(1, post, END_HEADERS)
    # The answer's head comes, its body does not: the stream stays half-closed.
    kept_back = [settings((INITIAL_WINDOW_SIZE, 0)), acknowledged, asks, begun]
    done = [asks, answered(200)]

    def with_block(content, stream=1):
        return frame(HEADERS, END_STREAM | END_HEADERS, stream, content)

    def asked_with(*more):
        return headers(1, [*get, *more])

    def without(name):
        return headers(1, [field for field in get if field[0] != name])

    def literal(pattern, name, value, huffman):
        """A literal field: its first byte, an indexed or a new name, the value."""
        encoder = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)

        def text(content):
            content = encoder.encode(content) if huffman else content
            return bytes([len(content) | (0x80 if huffman else 0)]) + content

        return pattern + (b"" if name is None else text(name)) + text(value)

    def too_many(connection):
        if connection.maximum_streams is None:
            raise AssertionError("no SETTINGS_MAX_CONCURRENT_STREAMS")
        last = 2 * connection.maximum_streams + 1
        connection.send(
            b"".join(with_block(fields, stream) for stream in range(1, last + 1, 2)))
        refused(last, PROTOCOL_ERROR, REFUSED_STREAM)(connection)

    unknown_frame = frame(0x16, payload=bytes(8))
    served = [
        ("1/1", "the client's preface", []),
        ("2/1", "PRIORITY on an idle stream", [priority(1), asks, answered(200)]),
        ("2/2", "WINDOW_UPDATE on a half-closed stream",
         [*kept_back, window_update(1, 1000), piece_of_any]),
        ("2/3", "PRIORITY on a half-closed stream",
         [*kept_back, priority(1), window_update(1, 10_000), ended]),
        ("2/4", "RST_STREAM on a half-closed stream", [*kept_back, reset(1), ping(), pong()]),
        ("2/5", "PRIORITY on a closed stream", [*done, priority(1), ping(), pong()]),
        ("3.1/1", "DATA", [opens, data(1, event), answered(202)]),
        ("3.1/2", "several DATA",
         [opens, data(1, event[:half], 0), data(1, event[half:]), answered(202)]),
        ("3.1/3", "DATA with padding",
         [opens, data(1, b"\x06" + event + bytes(6), END_STREAM | PADDED), answered(202)]),
        ("3.2/1", "HEADERS", [asks, answered(200)]),
        ("3.2/2", "HEADERS with padding",
         [frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, b"\x06" + fields + bytes(6)),
          answered(200)]),
        ("3.2/3", "HEADERS with a priority",
         [frame(HEADERS, END_STREAM | END_HEADERS | WITH_PRIORITY, 1, priority_fields() + fields),
          answered(200)]),
        ("3.3/1", "PRIORITY 1", [priority(1, weight=0), asks, answered(200)]),
        ("3.3/2", "PRIORITY 256", [priority(1, weight=255), asks, answered(200)]),
        ("3.3/3", "PRIORITY with a dependency", [priority(1), priority(3, on=1), asks,
                                                 answered(200)]),
        ("3.3/4", "PRIORITY with an exclusive dependency",
         [priority(1), priority(3, on=1, exclusive=True), asks, answered(200)]),
        ("3.3/5", "PRIORITY for an idle stream, then HEADERS on a lower one",
         [priority(5), headers(3, get), answered(200, 3)]),
        ("3.4/1", "RST_STREAM", [opens, reset(1), ping(), pong()]),
        ("3.5/1", "SETTINGS", [settings((MAX_CONCURRENT_STREAMS, 100)), acknowledged]),
        ("3.7/1", "PING", [ping(), pong()]),
        ("3.8/1", "GOAWAY", [go_away(), ping(), unharmed_or_closed]),
        ("3.9/1", "WINDOW_UPDATE of the connection", [window_update(0, 1), asks, answered(200)]),
        ("3.9/2", "WINDOW_UPDATE of a stream", [*kept_back, window_update(1, 1), piece(1)]),
        ("3.10/1", "CONTINUATION",
         [headers(1, get, END_STREAM), continuation(1), answered(200)]),
        ("3.10/2", "several CONTINUATION",
         [headers(1, get, END_STREAM), continuation(1, flags=0), continuation(1), answered(200)]),
        ("4/1", "GET", [asks, answered(200)]),
        ("4/2", "HEAD", [headers(1, request("HEAD")), answered_without_body(200)]),
        ("4/3", "POST", [opens, data(1, event), answered(202)]),
        ("4/4", "POST with trailers",
         [opens, data(1, event, 0), headers(1, [("x-test", "ok")]), answered(202)]),
    ]
    # RFC 7541 6.1 and 6.2: an indexed field, and literals of three patterns.
    patterns = [
        ("with indexing", b"\x7a", b"\x40"), ("without indexing", b"\x0f\x2b", b"\x00"),
        ("never indexed", b"\x1f\x2b", b"\x10")]
    represented = [("an indexed field", b"\xba")]
    for title, indexed, new in patterns:
        for name, pattern, is_new in ("an indexed name", indexed, False), ("a new name", new, True):
            for how, huffman in ("", False), (" in Huffman code", True):
                represented.append((
                    f"a literal {title}, {name}{how}",
                    literal(pattern, b"x-test" if is_new else None, b"h2spec", huffman)))
    served += [
        (f"5/{number}", f"HPACK: {title}", [with_block(fields + content), answered(200)])
        for number, (title, content) in enumerate(represented, 1)]
    served += [
        ("5/14", "HPACK: an update of the table's size", [with_block(b"\x20" + fields),
                                                          answered(200)]),
        ("5/15", "HPACK: two updates of the table's size",
         [with_block(b"\x20\x3f\xe1\x1f" + fields), answered(200)]),
    ]

    malformed = refused(1, PROTOCOL_ERROR)
    refusals = [
        ("3.5/1", "the client's preface", []),
        ("3.5/2", "an invalid preface", [None, b"INVALID CONNECTION PREFACE\r\n\r\n", closed]),
        ("4.1/1", "a frame of unknown type", [unknown_frame, ping(), pong()]),
        ("4.1/2", "a frame with undefined flags", [ping(flags=0x16), pong()]),
        ("4.1/3", "a frame with the reserved bit", [ping(stream=0x80000000), pong()]),
        ("4.2/1", "DATA of 2^14 bytes", [opens, data(1, event.ljust(16_384)), answered(202)]),
        ("4.2/2", "DATA larger than the largest frame",
         [opens, data(1, event.ljust(16_385)), refused(1, FRAME_SIZE_ERROR)]),
        ("4.2/3", "HEADERS larger than the largest frame",
         [with_block(fields + bytes(16_385)), fatal(FRAME_SIZE_ERROR)]),
        ("4.3/1", "an invalid field block", [with_block(b"\x40"), fatal(COMPRESSION_ERROR)]),
        ("4.3/2", "PRIORITY within a field block",
         [headers(1, get, END_STREAM), priority(1), continuation(1), fatal(PROTOCOL_ERROR)]),
        ("4.3/3", "HEADERS of another stream within a field block",
         [headers(1, get, END_STREAM), headers(3, get), continuation(1), fatal(PROTOCOL_ERROR)]),
        ("5.1/1", "idle: DATA", [data(1), fatal(PROTOCOL_ERROR)]),
        ("5.1/2", "idle: RST_STREAM", [reset(1), fatal(PROTOCOL_ERROR)]),
        ("5.1/3", "idle: WINDOW_UPDATE", [window_update(1, 100), fatal(PROTOCOL_ERROR)]),
        ("5.1/4", "idle: CONTINUATION", [continuation(1, get), fatal(PROTOCOL_ERROR)]),
        ("5.1/5", "half-closed: DATA", [*kept_back, data(1), refused(1, STREAM_CLOSED)]),
        ("5.1/6", "half-closed: HEADERS",
         [*kept_back, headers(1, [("x-test", "ok")]), refused(1, STREAM_CLOSED)]),
        ("5.1/7", "half-closed: CONTINUATION",
         [*kept_back, continuation(1), refused(1, STREAM_CLOSED, PROTOCOL_ERROR)]),
        ("5.1/8", "closed: DATA after RST_STREAM",
         [opens, reset(1), data(1), refused(1, STREAM_CLOSED)]),
        # A request on a number that was used is also an error of type PROTOCOL_ERROR by 5.1.1.
        ("5.1/9", "closed: HEADERS after RST_STREAM",
         [opens, reset(1), asks, refused(1, STREAM_CLOSED, PROTOCOL_ERROR)]),
        ("5.1/10", "closed: CONTINUATION after RST_STREAM",
         [opens, reset(1), continuation(1), refused(1, STREAM_CLOSED, PROTOCOL_ERROR)]),
        ("5.1/11", "closed: DATA", [*done, data(1), refused(1, STREAM_CLOSED)]),
        ("5.1/12", "closed: HEADERS", [*done, asks, fatal(STREAM_CLOSED, PROTOCOL_ERROR)]),
        ("5.1/13", "closed: CONTINUATION",
         [*done, continuation(1), fatal(STREAM_CLOSED, PROTOCOL_ERROR)]),
        ("5.1.1/1", "an even stream", [headers(2, get), fatal(PROTOCOL_ERROR)]),
        ("5.1.1/2", "a stream lower than one before",
         [headers(5, get), answered(200, 5), headers(3, get), fatal(PROTOCOL_ERROR)]),
        ("5.1.2/1", "more streams than are allowed",
         [settings((INITIAL_WINDOW_SIZE, 0)), acknowledged, too_many]),
        # RFC 9113 has no dependencies any more; of RFC 7540 this is left.
        ("5.3.1/1", "HEADERS that depend on themselves",
         [frame(HEADERS, END_STREAM | END_HEADERS | WITH_PRIORITY, 1,
                priority_fields(on=1) + fields), malformed]),
        ("5.3.1/2", "PRIORITY that depends on itself", [priority(1, on=1), malformed]),
        ("5.4.1/1", "a connection error ends the connection", [ping(stream=3), closed]),
        ("5.4.1/2", "a connection error is told by GOAWAY",
         [ping(stream=3), fatal(PROTOCOL_ERROR)]),
        ("5.5/1", "an unknown frame", [unknown_frame, ping(), pong()]),
        ("5.5/2", "an unknown frame within a field block",
         [headers(1, get, END_STREAM), unknown_frame, fatal(PROTOCOL_ERROR)]),
        ("6.1/1", "DATA of stream 0", [data(0), fatal(PROTOCOL_ERROR)]),
        ("6.1/2", "DATA of a stream that is not open",
         [*kept_back, data(1), refused(1, STREAM_CLOSED)]),
        ("6.1/3", "DATA with more padding than bytes",
         [opens, data(1, b"\x06test", END_STREAM | PADDED), fatal(PROTOCOL_ERROR)]),
        ("6.2/1", "HEADERS without END_HEADERS, and PRIORITY",
         [headers(1, get, 0), priority(1), continuation(1), fatal(PROTOCOL_ERROR)]),
        ("6.2/2", "HEADERS without END_HEADERS, and others",
         [headers(1, get, 0), headers(3, get), continuation(1), fatal(PROTOCOL_ERROR)]),
        ("6.2/3", "HEADERS of stream 0", [headers(0, get), fatal(PROTOCOL_ERROR)]),
        ("6.2/4", "HEADERS with more padding than bytes",
         [frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1,
                bytes([len(fields) + 2]) + fields), fatal(PROTOCOL_ERROR)]),
        ("6.3/1", "PRIORITY of stream 0", [priority(0), fatal(PROTOCOL_ERROR)]),
        ("6.3/2", "PRIORITY of 4 bytes",
         [*kept_back, frame(PRIORITY, 0, 1, bytes(4)), refused(1, FRAME_SIZE_ERROR)]),
        ("6.4/1", "RST_STREAM of stream 0", [reset(0), fatal(PROTOCOL_ERROR)]),
        ("6.4/2", "RST_STREAM of an idle stream", [reset(1), fatal(PROTOCOL_ERROR)]),
        ("6.4/3", "RST_STREAM of 3 bytes",
         [*kept_back, frame(RST_STREAM, 0, 1, bytes(3)), fatal(FRAME_SIZE_ERROR)]),
        ("6.5/1", "an acknowledgment of SETTINGS with content",
         [frame(SETTINGS, ACK, 0, b"\0"), fatal(FRAME_SIZE_ERROR)]),
        ("6.5/2", "SETTINGS of a stream",
         [settings((MAX_CONCURRENT_STREAMS, 100), stream=1), fatal(PROTOCOL_ERROR)]),
        ("6.5/3", "SETTINGS of 8 bytes", [frame(SETTINGS, payload=bytes(8)),
                                          fatal(FRAME_SIZE_ERROR)]),
        ("6.5.2/1", "ENABLE_PUSH of 2", [settings((ENABLE_PUSH, 2)), fatal(PROTOCOL_ERROR)]),
        ("6.5.2/2", "INITIAL_WINDOW_SIZE of 2^31",
         [settings((INITIAL_WINDOW_SIZE, 1 << 31)), fatal(FLOW_CONTROL_ERROR)]),
        ("6.5.2/3", "MAX_FRAME_SIZE of 2^14 - 1",
         [settings((MAX_FRAME_SIZE, (1 << 14) - 1)), fatal(PROTOCOL_ERROR)]),
        ("6.5.2/4", "MAX_FRAME_SIZE of 2^24",
         [settings((MAX_FRAME_SIZE, 1 << 24)), fatal(PROTOCOL_ERROR)]),
        ("6.5.2/5", "an unknown setting", [settings((0xff, 1)), acknowledged, ping(), pong()]),
        ("6.5.3/1", "two values of INITIAL_WINDOW_SIZE",
         [settings((INITIAL_WINDOW_SIZE, 100), (INITIAL_WINDOW_SIZE, 1)), acknowledged, asks,
          piece(1)]),
        ("6.5.3/2", "SETTINGS are acknowledged", [settings((ENABLE_PUSH, 0)), acknowledged]),
        ("6.7/1", "PING", [ping(), pong()]),
        ("6.7/2", "PING that acknowledges", [ping(b"answered", ACK), ping(), pong()]),
        ("6.7/3", "PING of a stream", [ping(stream=1), fatal(PROTOCOL_ERROR)]),
        ("6.7/4", "PING of 6 bytes", [ping(bytes(6)), fatal(FRAME_SIZE_ERROR)]),
        ("6.8/1", "GOAWAY of a stream", [go_away(stream=1), fatal(PROTOCOL_ERROR)]),
        ("6.9/1", "WINDOW_UPDATE by 0", [window_update(0, 0), fatal(PROTOCOL_ERROR)]),
        ("6.9/2", "WINDOW_UPDATE of a stream by 0", [opens, window_update(1, 0), malformed]),
        ("6.9/3", "WINDOW_UPDATE of 3 bytes",
         [frame(WINDOW_UPDATE, payload=b"\0\0\1"), fatal(FRAME_SIZE_ERROR)]),
        ("6.9.1/1", "a window of 1",
         [settings((INITIAL_WINDOW_SIZE, 1)), acknowledged, asks, piece(1)]),
        ("6.9.1/2", "a window above 2^31 - 1",
         [window_update(0, (1 << 31) - 1) * 2, fatal(FLOW_CONTROL_ERROR)]),
        ("6.9.1/3", "a stream's window above 2^31 - 1",
         [opens, window_update(1, (1 << 31) - 1) * 2, refused(1, FLOW_CONTROL_ERROR)]),
        ("6.9.2/1", "a window that opens by SETTINGS",
         [*kept_back, settings((INITIAL_WINDOW_SIZE, 1)), acknowledged, piece(1)]),
        ("6.9.2/2", "a window that becomes negative",
         [settings((INITIAL_WINDOW_SIZE, 3)), acknowledged, asks, piece(3),
          settings((INITIAL_WINDOW_SIZE, 2)), acknowledged, window_update(1, 2), piece(1)]),
        ("6.9.2/3", "INITIAL_WINDOW_SIZE above 2^31 - 1 while a stream is open",
         [*kept_back, settings((INITIAL_WINDOW_SIZE, 1 << 31)), fatal(FLOW_CONTROL_ERROR)]),
        ("6.10/1", "several CONTINUATION",
         [headers(1, get, END_STREAM), continuation(1, flags=0), continuation(1), answered(200)]),
        ("6.10/2", "CONTINUATION and DATA",
         [headers(1, post, 0), continuation(1, flags=0), data(1), fatal(PROTOCOL_ERROR)]),
        ("6.10/3", "CONTINUATION of stream 0",
         [headers(1, get, END_STREAM), continuation(0), fatal(PROTOCOL_ERROR)]),
        ("6.10/4", "CONTINUATION after HEADERS with END_HEADERS",
         [*kept_back, continuation(1), fatal(PROTOCOL_ERROR)]),
        ("6.10/5", "CONTINUATION after CONTINUATION with END_HEADERS",
         [headers(1, get, END_STREAM), continuation(1), continuation(1), fatal(PROTOCOL_ERROR)]),
        ("6.10/6", "CONTINUATION after DATA",
         [opens, data(1, event, 0), continuation(1), fatal(PROTOCOL_ERROR)]),
        ("7/1", "GOAWAY with an unknown error", [go_away(OTHER_ERROR), ping(),
                                                 unharmed_or_closed]),
        ("7/2", "RST_STREAM with an unknown error", [opens, reset(1, OTHER_ERROR), ping(),
                                                     pong()]),
        ("8.1/1", "trailers without END_STREAM",
         [opens, data(1, event, 0), headers(1, [("x-test", "ok")], END_HEADERS), malformed]),
        ("8.1.2/1", "a field's name in capitals", [asked_with(("X-TEST", "ok")), malformed]),
        ("8.1.2.1/1", "an unknown pseudo field", [asked_with((":test", "ok")), malformed]),
        ("8.1.2.1/2", "a pseudo field of answers", [asked_with((":status", "200")), malformed]),
        ("8.1.2.1/3", "a pseudo field in trailers",
         [opens, data(1, event, 0), headers(1, [(":method", "POST")]), malformed]),
        ("8.1.2.1/4", "a pseudo field after others",
         [headers(1, [("x-test", "ok"), *get]), malformed]),
        ("8.1.2.2/1", "Connection", [asked_with(("connection", "keep-alive")), malformed]),
        ("8.1.2.2/2", "TE other than trailers",
         [asked_with(("te", "trailers, deflate")), malformed]),
        ("8.1.2.3/1", "an empty :path", [headers(1, request("GET", "")), malformed]),
        ("8.1.2.3/2", "no :method", [without(":method"), malformed]),
        ("8.1.2.3/3", "no :scheme", [without(":scheme"), malformed]),
        ("8.1.2.3/4", "no :path", [without(":path"), malformed]),
        ("8.1.2.3/5", "two :method", [headers(1, [get[0], *get]), malformed]),
        ("8.1.2.3/6", "two :scheme", [headers(1, [get[1], *get]), malformed]),
        ("8.1.2.3/7", "two :path", [headers(1, [get[2], *get]), malformed]),
        ("8.1.2.6/1", "Content-Length other than DATA",
         [headers(1, [*post, ("content-length", "1")], END_HEADERS), data(1), malformed]),
        ("8.1.2.6/2", "Content-Length other than the sum of DATA",
         [headers(1, [*post, ("content-length", "1")], END_HEADERS), data(1, flags=0), data(1),
          malformed]),
        ("8.2/1", "PUSH_PROMISE",
         [frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\3" + fields), fatal(PROTOCOL_ERROR)]),
    ]

    def undecodable(content):
        return [with_block(content), fatal(COMPRESSION_ERROR)]

    x_test = b"\x00\x06x-test"
    compression = [
        ("2.3.3/1", "an index beyond the tables", undecodable(fields + b"\xc6")),
        ("2.3.3/2", "a name's index beyond the tables", undecodable(fields + b"\x7f\x07\x02ok")),
        ("4.2/1", "an update of the table's size after fields",
         undecodable(fields + b"\x20")),
        ("5.2/1", "8 bits of padding in Huffman code",
         undecodable(fields + x_test + b"\x85\x9c\x48\xac\xa4\xff")),
        ("5.2/2", "padding with zeros in Huffman code",
         undecodable(fields + x_test + b"\x83\x49\x50\x90")),
        ("5.2/3", "EOS in Huffman code",
         undecodable(fields + x_test + b"\x88\x9c\x48\xac\xa4\xff\xff\xff\xff")),
        ("6.1/1", "index 0", undecodable(fields + b"\x80")),
        ("6.3/1", "a table larger than allowed", undecodable(b"\x3f\xe2\x1f" + fields)),
    ]
    groups = ("generic", served), ("http2", refusals), ("hpack", compression)
    for group, found in groups:
        for number, title, steps in found:
            name = f"{group} {number}"
            if name in EXCEPTIONS:
                steps = [*steps[:-1], EXCEPTIONS[name][1]()]
            yield name, title, steps


def piece_of_any(connection):
    connection.wait("DATA", is_frame(frames.DataFrame, 1))


def ended(connection):
    connection.wait("the end of the answer", lambda _: 1 in connection.ended)


def planted(app, token):
    """Yields (title, how it fails, steps) of cases that a right server must fail: each expects what
    another case does."""
    real = {name: steps for name, _, steps in cases(app, token)}

    def mixed(sent, expected):
        return [*real[sent][:-1], real[expected][-1]]

    yield ("another error of the connection", r"not GOAWAY .*\(3,\).*GoAway error 1",
           mixed("http2 5.1/1", "http2 6.5.2/2"))
    yield ("another error of a stream", r"not RST_STREAM .*\(1,\).*RstStream error 5",
           mixed("http2 5.1/5", "http2 8.1.2/1"))
    yield ("an error where none is", "not within .*GOAWAY.*Ping",
           mixed("http2 4.1/1", "http2 5.1/1"))
    yield ("an error of a stream where none is", "not within .*RST_STREAM.*Headers 200",
           mixed("generic 3.2/1", "http2 8.1.2/1"))
    yield ("no error where one is", "given up before an answer to PING",
           mixed("http2 5.1/1", "http2 4.1/1"))
    yield ("another status", "not answered 200.*Headers 202",
           mixed("generic 3.1/1", "generic 3.2/1"))
    yield ("an answer that does not come", "not within .*the answer of 1.*RstStream",
           mixed("http2 8.1.2/1", "generic 3.2/1"))
    yield ("another content of PING", "not an answer with", [ping(b"anything"), pong()])
    yield ("another length of DATA", "DATA of 1 bytes and not of 2",
           [*real["http2 6.9.1/1"][:-1], piece(2)])
    yield ("an acknowledgment that does not come", "not within .*acknowledgment",
           [ping(), acknowledged])
    yield "an end that does not come", "not within .*the end", [ping(), closed]
    yield ("a body where none is", "HEAD is answered with a body",
           [*real["generic 3.2/1"][:-1], answered_without_body(200)])
    yield ("calm where an error is", "an error where none is", [ping(stream=3), unharmed_or_closed])


def run(connection, steps, patience):
    """Runs one case; raises AssertionError. From the handshake on each answer may take as many
    seconds."""
    if steps[:1] == [None]:
        steps = steps[1:]
    else:
        connection.shake_hands()
    connection.timeout = patience
    for step in steps:
        if callable(step):
            step(connection)
        else:
            connection.send(step)
