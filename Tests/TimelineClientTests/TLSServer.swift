import Foundation

/// A small HTTPS server in another process, with a certificate authority of its own.
final class TLSServer: Sendable {
    struct Failure: Error {
        let what: String
    }

    let directory: String
    let origin: String
    private let process: Process
    private let input = Pipe()

    var caFile: String { directory + "/ca.pem" }
    /// The path of the certificate of an authority that did not sign the server's.
    var otherCAFile: String { directory + "/other.pem" }

    init() throws {
        directory = NSTemporaryDirectory() + "timeline-client-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        for name in ["ca", "other"] {
            try Self.openssl([
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "2", "-subj", "/CN=\(name)", "-addext",
                "subjectAltName=IP:127.0.0.1,DNS:localhost",
                "-keyout", "\(directory)/\(name).key", "-out", "\(directory)/\(name).pem",
            ])
        }
        let script = directory + "/server.py"
        try Self.script.write(toFile: script, atomically: true, encoding: .utf8)
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", script, directory]
        let output = Pipe()
        process.standardOutput = output
        // The server ends when its standard input closes, so none survives, not even a crashed
        // test.
        process.standardInput = input
        process.standardError = FileHandle.nullDevice
        try process.run()
        var line = Data()
        while line.last != 0x0A, let byte = try output.fileHandleForReading.read(upToCount: 1),
            !byte.isEmpty
        {
            line += byte
        }
        let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .newlines)
        guard let port = Int(text) else { throw Failure(what: "the server did not start") }
        origin = "https://127.0.0.1:\(port)"
    }

    deinit {
        // SIGTERM would not do: a child of a thread that blocks it never receives it.
        kill(process.processIdentifier, SIGKILL)
        try? FileManager.default.removeItem(atPath: directory)
    }

    private static func openssl(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        process.standardError = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(what: "no certificate") }
    }

    private static let script = """
        import http.server, json, os, ssl, sys, threading
        sent = 0
        def watch():
            sys.stdin.read()
            os._exit(0)
        threading.Thread(target=watch, daemon=True).start()
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass
            def head(self, status=200, first=b"", **fields):
                self.send_response(status)
                self.send_header("Connection", "close")
                for name, value in fields.items():
                    self.send_header(name.replace("_", "-"), value)
                # In one piece: no time passes between the two.
                self._headers_buffer.append(b"\\r\\n" + first)
                self.flush_headers()
                self.close_connection = True
            def write(self, text):
                self.wfile.write(text)
                self.wfile.flush()
            def hold(self):
                try: self.connection.recv(1)
                except OSError: pass
            def body(self):
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            def handle_any(self):
                global sent
                path = self.path.split("?")[0]
                if path == "/echo":
                    text = json.dumps({"method": self.command, "path": self.path,
                        "authorization": self.headers.get("Authorization"),
                        "body": self.body().decode()}).encode()
                    self.head(Content_Length=str(len(text)))
                    self.write(text)
                elif path == "/drip":
                    self.head(Content_Type="text/event-stream")
                    self.write(b"id: a\\n\\n")
                    self.write(b"event: reload\\ndata: x\\n\\n")
                elif path == "/hold":
                    self.head(first=b"first", Content_Type="text/event-stream")
                    self.hold()
                elif path == "/hang":
                    self.hold()
                elif path == "/redirect":
                    self.head(302, Location="/echo", Content_Length="0")
                elif path == "/big":
                    self.head(Content_Length=str(1 << 21))
                    self.write(b"x" * (1 << 21))
                elif path == "/flood":
                    self.head()
                    try:
                        for _ in range(4096):
                            self.write(b"x" * 65536)
                            sent += 65536
                    except OSError: pass
                elif path == "/sent":
                    text = str(sent).encode()
                    self.head(Content_Length=str(len(text)))
                    self.write(text)
                elif path == "/problem":
                    text = json.dumps({"type": "urn:timeline-gateway:problem:faults",
                        "title": "The registration is wrong",
                        "faults": [{"place": "widgets[0].kind", "message": "is required"}]})
                    self.head(422, Content_Type="application/problem+json",
                        Content_Length=str(len(text)))
                    self.write(text.encode())
                else:
                    self.head(404, Content_Length="0")
            do_GET = do_PUT = do_POST = do_DELETE = handle_any
        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            def handle_error(self, *arguments): pass
        server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1] + "/ca.pem", sys.argv[1] + "/ca.key")
        server.socket = context.wrap_socket(server.socket, server_side=True,
            do_handshake_on_connect=False)
        print(server.server_address[1], flush=True)
        server.serve_forever()
        """
}
