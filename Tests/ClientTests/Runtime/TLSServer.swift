import Foundation
import GatewayTestSupport
import WidgetModel

/// A small HTTPS server in another process, with a certificate authority of its own.
final class TLSServer: Sendable {
    let origin: String
    let caFile: String
    /// The path of the certificate of an authority that did not sign the server's.
    let otherCAFile: String
    private let program: TestProgram

    init() throws {
        let folder = try GatewayConfiguration().folder
        caFile = folder + "/certs/ca.pem"
        otherCAFile = try GatewayConfiguration().folder + "/certs/ca.pem"
        let script = folder + "/server.py"
        try Self.script.write(toFile: script, atomically: true, encoding: .utf8)
        program = try TestProgram("/usr/bin/python3", [script, folder + "/certs/server"])
        guard let port = try program.json(line: 0)?["port"]?.integerValue else {
            throw TestFailure("the server does not start")
        }
        origin = "https://127.0.0.1:\(port)"
    }

    private static let script = """
        import http.server, json, ssl, sys
        sent = 0
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass
            def head(self, first=b"", **fields):
                self.send_response(200)
                self.send_header("Connection", "close")
                for name, value in fields.items():
                    self.send_header(name.replace("_", "-"), value)
                # In one piece: no time passes between the two.
                self._headers_buffer.append(b"\\r\\n" + first)
                self.flush_headers()
                self.close_connection = True
            def answer(self, text):
                self.head(text, Content_Length=str(len(text)))
            def hold(self):
                try: self.connection.recv(1)
                except OSError: pass
            def handle_any(self):
                global sent
                path = self.path.split("?")[0]
                if path == "/echo":
                    body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                    self.answer(json.dumps({"method": self.command, "path": self.path,
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
                            sent += 65536
                    except OSError: pass
                elif path == "/sent":
                    self.answer(str(sent).encode())
            do_GET = do_PUT = do_POST = do_DELETE = handle_any
        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            def handle_error(self, *arguments): pass
        server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1] + ".pem", sys.argv[1] + ".key")
        server.socket = context.wrap_socket(server.socket, server_side=True,
            do_handshake_on_connect=False)
        print(json.dumps({"port": server.server_address[1]}), flush=True)
        server.serve_forever()
        """
}
