import Foundation
import WidgetModel

/// An HTTP server in another language, which prints lines of JSON; killed when this value goes.
package final class PythonServer: Sendable {
    /// Prints the server's port first. A handler is methods of `Handler`, which `say` what happens.
    private static let frame = """
        import http.server, json, os, ssl, sys, threading, time
        certificate, key, host, port = sys.argv[1:5]
        arguments = sys.argv[5:]
        def say(value): print(json.dumps(value) + "\\n", end="", flush=True)
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass
            def body(self): return self.rfile.read(int(self.headers["content-length"]))
            def fields(self): return {name.lower(): value for name, value in self.headers.items()}
            def answer(self, status, content=b"", **fields):
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        """
    private static let end = """

        http.server.ThreadingHTTPServer.request_queue_size = 128
        server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        say({"port": server.server_address[1]})
        server.serve_forever()
        """

    private let program: TestProgram
    package let port: Int64

    /// Starts one.
    ///
    /// - Parameters:
    ///   - handler: The methods of the class `Handler`, and other definitions that they need. They
    ///     know `arguments`.
    ///   - folder: The directory of its script; a new one when `nil`.
    ///   - certificate: Without it the connection is not encrypted.
    ///   - port: The port; 0 for a free one.
    package init(
        _ handler: String, in folder: String? = nil,
        certificate: (file: String, key: String)? = nil, host: String = "127.0.0.1",
        port: Int64 = 0, arguments: [String] = []
    ) throws {
        let script = try (folder ?? GatewayProcess.temporaryDirectory()) + "/\(UUID()).py"
        try (Self.frame + handler + Self.end)
            .write(toFile: script, atomically: true, encoding: .utf8)
        program = try TestProgram(
            "/usr/bin/python3",
            [script, certificate?.file ?? "", certificate?.key ?? "", host, "\(port)"] + arguments)
        guard let port = try program.json(line: 0)?["port"]?.integerValue else {
            throw TestFailure("no server: \(program.standardErrorTail)")
        }
        self.port = port
    }

    /// Waits for the line with that number, counted from 1; `nil` if it is no object.
    package func line(_ number: Int) throws -> JSONObject? { try program.json(line: number) }

    /// The lines so far.
    package var lines: [JSONObject] {
        // The last line may be incomplete.
        let lines = program.output.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.dropFirst().dropLast().compactMap {
            (try? JSONValue(parsing: Array($0.utf8)))?.objectValue
        }
    }

    package func stop() { program.kill() }
}
