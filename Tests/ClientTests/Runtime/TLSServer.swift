import GatewayTestSupport

/// A small HTTPS server in another process, with a certificate authority of its own.
final class TLSServer: Sendable {
    let origin: String
    let caFile: String
    /// The path of the certificate of an authority that did not sign the server's.
    let otherCAFile: String
    private let server: PythonServer

    init() throws {
        let folder = try GatewayConfiguration().folder + "/certs"
        caFile = folder + "/ca.pem"
        otherCAFile = try GatewayConfiguration().folder + "/certs/ca.pem"
        server = try PythonServer(
            Self.handler, certificate: (folder + "/server.pem", folder + "/server.key"))
        origin = "https://127.0.0.1:\(server.port)"
    }

    private static let handler = """
            sent = 0
            def head(self, first=b"", **fields):
                self.send_response(200)
                self.send_header("Connection", "close")
                for name, value in fields.items():
                    self.send_header(name.replace("_", "-"), value)
                # In one piece: no time passes between the two.
                self._headers_buffer.append(b"\\r\\n" + first)
                self.flush_headers()
                self.close_connection = True
            def text(self, text): self.head(text, Content_Length=str(len(text)))
            def hold(self):
                try: self.connection.recv(1)
                except OSError: pass
            def handle_any(self):
                path = self.path.split("?")[0]
                if path == "/echo":
                    body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                    self.text(json.dumps({"method": self.command, "path": self.path,
                        "authorization": self.headers.get("Authorization"),
                        "body": body.decode()}).encode())
                elif path == "/drip":
                    self.head(b"id: a\\n\\n", Content_Type="text/event-stream")
                    self.wfile.write(b"event: reload\\ndata: x\\n\\n")
                elif path == "/hold":
                    self.head(b"first", Content_Type="text/event-stream")
                    self.hold()
                elif path == "/hang":
                    self.hold()
                elif path == "/flood":
                    self.head()
                    try:
                        for _ in range(4096):
                            self.wfile.write(b"x" * 65536)
                            Handler.sent += 65536
                    except OSError: pass
                elif path == "/sent":
                    self.text(str(Handler.sent).encode())
            do_GET = do_PUT = do_POST = do_DELETE = handle_any
        """
}
