import Foundation
import GatewayTLS
import WidgetModel

/// A server with another language's TLS and HTTP that answers every GET with the content of a file,
/// as an identity provider publishes its keys.
package final class KeySetServer: Sendable {
    /// Prints its port. Before it answers a request, its path is in a file.
    private static let script = """
        import http.server, ssl, sys
        class Keys(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                with open(sys.argv[5], "a") as requests: requests.write(self.path + "\\n")
                body = open(sys.argv[3], "rb").read()
                self.send_response(302 if self.path == "/moved" else 200)
                self.send_header("location", "/keys")
                self.send_header("content-type", "application/json")
                self.send_header("cache-control", "public, max-age=600")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            def log_message(self, *arguments): pass
        port = int(sys.argv[4])
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Keys)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        server.socket = context.wrap_socket(server.socket, server_side=True)
        print('{"port": %d}' % server.server_address[1], flush=True)
        server.serve_forever()
        """

    private let program: TestProgram
    private let file: String
    private let requests: String
    /// Its port on `localhost`.
    package let port: Int64

    /// Starts it, with its files in `folder`.
    ///
    /// - Parameter port: The port; by default a free one.
    package init(
        in folder: String, _ certificates: DevelopmentCertificates, keys: [UInt8], port: Int64 = 0
    ) throws {
        (file, requests) = (folder + "/published.json", folder + "/requests")
        try Data().write(to: URL(filePath: requests))
        let script = folder + "/keys.py"
        try Self.script.write(toFile: script, atomically: true, encoding: .utf8)
        try Data(keys).write(to: URL(filePath: file), options: .atomic)
        program = try TestProgram(
            "/usr/bin/python3",
            [script, certificates.certificate, certificates.key, file, String(port), requests])
        guard let port = try program.json(line: 0)?["port"]?.integerValue else {
            throw TestFailure("the server of keys does not start")
        }
        self.port = port
    }

    package var url: String { "https://localhost:\(port)/keys" }

    /// The number of requests that were answered, and of those that are being answered.
    package var requestCount: Int {
        // Not from its output, which arrives after the answer.
        let paths = (try? String(contentsOfFile: requests, encoding: .utf8)) ?? ""
        return paths.split(separator: "\n").count
    }

    /// Answers with other content from now on.
    package func publish(_ keys: [UInt8]) throws {
        try Data(keys).write(to: URL(filePath: file), options: .atomic)
    }

    /// Ends it.
    package func stop() { program.kill() }
}
