import Foundation
import GatewayTestSupport
import Synchronization
import WidgetModel

/// An HTTP/2 server in another process that answers requests with the actions of a test, in the
/// order of their arrival, whatever they ask for.
///
/// It reads frames and no headers, so that it can answer in ways that no library does. The last
/// action is repeated.
final class ScriptedServer: Sendable {
    /// The server's reaction to one request.
    enum Action: String {
        /// 200 without a body.
        case ok
        /// 200 with a body of 100,000 bytes.
        case big
        /// 400 with a reason.
        case reason
        /// 429 with `retry-after` and a body that ends the stream later.
        case busy
        /// 302.
        case redirect
        /// 103, and then 200.
        case interim
        /// A status, and then the stream is reset.
        case statusThenReset
        /// RST_STREAM with REFUSED_STREAM.
        case refuse
        /// RST_STREAM with INTERNAL_ERROR.
        case reset
        /// No answer.
        case silence
        /// The connection is closed at once.
        case close
        /// GOAWAY that names the previous stream as the last one; if that one got no answer, it is
        /// answered afterwards.
        case goAwayBefore
        /// GOAWAY that names this stream as the last one, which is then answered. After either
        /// GOAWAY the connection is closed.
        case goAway
        /// RST_STREAM with INTERNAL_ERROR, and in the same record GOAWAY that names this stream as
        /// the last one.
        case resetAndGoAway
        /// The same two frames in the opposite order.
        case goAwayAndReset
        /// GOAWAY that names this stream as the last one, and then the connection is closed.
        case goAwayAndClose
        /// RST_STREAM with INTERNAL_ERROR for every stream without an answer and for this one, and
        /// in the same record GOAWAY that names this one.
        case resetAllAndGoAway
        /// GOAWAY that names this stream as the last one; the stream is not answered, and the
        /// connection stays. A PING follows.
        case goAwayAndSilence
        /// 200, and no answer to any later PING.
        case deaf
        /// Bytes that are not frames.
        case garbage
        /// 200, and then no more requests are allowed.
        case narrow
    }

    let directory: String
    let port: Int
    private let process: Process
    private let input = Pipe()
    private let lines: Mutex<FileHandle>

    var origin: String { "https://localhost:\(port)" }
    var certificate: String { directory + "/ca.pem" }
    /// The file of a certificate and key of an authority that did not sign the server's.
    var otherCertificate: String { directory + "/other.pem" }

    /// - Parameters:
    ///   - streamsMax: The server's `SETTINGS_MAX_CONCURRENT_STREAMS`.
    ///   - addresses: The loopback addresses that it listens on, at one port.
    ///   - wantsCertificate: Whether clients must present a certificate signed by `ca.pem`.
    ///   - speaks: The protocol that it agrees to (ALPN); `nil` for none.
    init(
        _ script: [Action], streamsMax: Int = 1_000, addresses: [String] = ["127.0.0.1"],
        wantsCertificate: Bool = false, speaks: String? = "h2"
    ) throws {
        directory = try GatewayProcess.temporaryDirectory()
        for name in ["ca", "other"] {
            _ = try TestCertificate(
                name, in: directory,
                alternativeNames: "IP:127.0.0.1,IP:127.0.0.2,DNS:localhost,DNS:hooks.example.com")
        }
        let program = directory + "/server.py"
        try Self.program.write(toFile: program, atomically: true, encoding: .utf8)
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["python3", program, directory, String(streamsMax), wantsCertificate ? "1" : "0"]
            + [speaks ?? "", addresses.joined(separator: ",")] + script.map(\.rawValue)
        let output = Pipe()
        process.standardOutput = output
        // The server ends when its standard input does, so none is left behind even by a test that
        // crashes.
        process.standardInput = input
        try process.run()
        lines = Mutex(output.fileHandleForReading)
        guard let port = Int(Self.line(output.fileHandleForReading)) else {
            throw TestFailure("the server did not start")
        }
        self.port = port
    }

    deinit { kill(process.processIdentifier, SIGKILL) }

    /// Returns the server's log so far: one line for each connection and request.
    func seen() throws -> [String] {
        try lines.withLock { handle in
            try input.fileHandleForWriting.write(contentsOf: Data("seen\n".utf8))
            return Self.line(handle).split(separator: ",").map(String.init)
        }
    }

    private static func line(_ handle: FileHandle) -> String {
        var line = Data()
        while line.last != 0x0A, let byte = try? handle.read(upToCount: 1), !byte.isEmpty {
            line += byte
        }
        return String(decoding: line, as: UTF8.self).trimmingCharacters(in: .newlines)
    }

    private static let program = """
        import os, socket, ssl, struct, sys, threading, time
        directory, streams_max, wants, speaks, addresses = sys.argv[1:6]
        script = sys.argv[6:]
        lock = threading.Lock()
        seen, count, connections = [], 0, 0
        DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
        def frame(kind, flags, stream, payload=b""):
            return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload
        def field(name, value):
            return b"\\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
        def status(code):
            return field(b":status", str(code).encode()) + field(b"apns-id", b"id-" + str(code).encode())
        def serve(sock):
            global count, connections
            try:
                sock = context.wrap_socket(sock, server_side=True)
                file = sock.makefile("rb")
                if len(file.read(24)) < 24: return
            except OSError: return
            with lock:
                connections += 1
                me = connections
                seen.append("connection %d" % me)
            last, silent, dead, deaf, waiting = 0, False, False, False, []
            def send(*frames):
                try: sock.sendall(b"".join(frames))
                except OSError: pass
            send(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, int(streams_max))))
            while True:
                try: head = file.read(9)
                except OSError: return
                if len(head) < 9: return
                size = struct.unpack(">I", b"\\0" + head[:3])[0]
                kind, flags = head[3], head[4]
                stream = struct.unpack(">I", head[5:])[0] & 0x7fffffff
                payload = file.read(size)
                if kind == SETTINGS and not flags & 1: send(frame(SETTINGS, 1, 0))
                if kind == PING and flags & 1:
                    with lock: seen.append("pong %d" % me)
                if kind == PING and not flags & 1:
                    with lock: seen.append("ping %d" % me)
                    if not deaf: send(frame(PING, 1, 0, payload))
                if kind == DATA and flags & 1:
                    with lock:
                        action = script[min(count, len(script) - 1)]
                        count += 1
                        seen.append("request %d %s" % (me, action))
                    ok = frame(HEADERS, 5, stream, b"\\x88" + field(b"apns-id", b"id-%d" % stream))
                    if action == "ok": send(ok)
                    elif action == "deaf":
                        deaf = True
                        send(ok)
                    elif action == "garbage": send(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
                    elif action == "narrow":
                        send(ok, frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 0)))
                    elif action == "big":
                        send(frame(HEADERS, 4, stream, status(200)))
                        for part in range(10): send(frame(DATA, 1 if part == 9 else 0, stream, b"x" * 10000))
                    elif action == "reason":
                        send(frame(HEADERS, 4, stream, status(400)), frame(DATA, 1, stream, b'{"reason":"BadDeviceToken"}'))
                    elif action == "busy":
                        send(frame(HEADERS, 4, stream, status(429) + field(b"retry-after", b"120")), frame(DATA, 0, stream, b"later"), frame(DATA, 1, stream))
                    elif action == "redirect": send(frame(HEADERS, 5, stream, status(302) + field(b"location", b"/elsewhere")))
                    elif action == "interim": send(frame(HEADERS, 4, stream, status(103)), ok)
                    elif action == "statusThenReset":
                        send(frame(HEADERS, 4, stream, status(410)))
                        time.sleep(0.1)
                        send(frame(RST, 0, stream, struct.pack(">I", 2)))
                    elif action == "refuse": send(frame(RST, 0, stream, struct.pack(">I", 7)))
                    elif action == "reset": send(frame(RST, 0, stream, struct.pack(">I", 2)))
                    elif action == "close":
                        sock.shutdown(socket.SHUT_RDWR)
                        sock.close()
                        return
                    elif action == "goAwayBefore":
                        send(frame(GOAWAY, 0, 0, struct.pack(">II", last, 0)))
                        dead = True
                        time.sleep(0.1)
                        if silent: send(frame(HEADERS, 5, last, b"\\x88"))
                    elif action == "goAway":
                        send(frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)), ok)
                        dead = True
                    elif action == "resetAndGoAway":
                        send(frame(RST, 0, stream, struct.pack(">I", 2)), frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)))
                        dead = True
                    elif action == "goAwayAndReset":
                        send(frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)), frame(RST, 0, stream, struct.pack(">I", 2)))
                        dead = True
                    elif action == "goAwayAndClose":
                        send(frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)))
                        sock.shutdown(socket.SHUT_RDWR)
                        sock.close()
                        return
                    elif action == "resetAllAndGoAway":
                        send(b"".join(frame(RST, 0, each, struct.pack(">I", 2)) for each in waiting + [stream]) + frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)))
                        dead = True
                    elif action == "goAwayAndSilence":
                        send(frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)), frame(PING, 0, 0, b"x" * 8))
                    if dead:
                        time.sleep(0.1)
                        sock.shutdown(socket.SHUT_RDWR)
                        sock.close()
                        return
                    last, silent = stream, action == "silence"
                    if silent: waiting.append(stream)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory + "/ca.pem", directory + "/ca.key")
        if speaks: context.set_alpn_protocols([speaks])
        if wants == "1":
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(directory + "/ca.pem")
        port = 0
        def accept(listener):
            while True:
                sock, _ = listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with lock: seen.append("accepted " + sock.getsockname()[0])
                threading.Thread(target=serve, args=(sock,), daemon=True).start()
        for address in addresses.split(","):
            listener = socket.create_server((address, port))
            port = listener.getsockname()[1]
            threading.Thread(target=accept, args=(listener,), daemon=True).start()
        print(port, flush=True)
        for line in sys.stdin:
            with lock: print(",".join(seen), flush=True)
        os._exit(0)
        """
}
