import Foundation
import GatewayTLS

/// A server with another language's TLS and HTTP that answers every GET with the content of a file,
/// as an identity provider publishes its keys.
package final class KeySetServer: Sendable {
    /// Before it answers a request, its path is in a file.
    private static let handler = """
            def do_GET(self):
                with open(arguments[1], "a") as requests: requests.write(self.path + "\\n")
                self.answer(
                    302 if self.path == "/moved" else 200, open(arguments[0], "rb").read(),
                    location="/keys", content_type="application/json",
                    cache_control="public, max-age=600")
        """

    private let server: PythonServer
    private let file: String
    private let requests: String
    /// Its port on `localhost`.
    package var port: Int64 { server.port }

    /// Starts the server, with its files in `folder`. By default its port is a free one.
    package init(
        in folder: String, _ certificates: DevelopmentCertificates, keys: [UInt8], port: Int64 = 0
    ) throws {
        (file, requests) = (folder + "/published.json", folder + "/requests")
        try Data().write(to: URL(filePath: requests))
        try Data(keys).write(to: URL(filePath: file), options: .atomic)
        server = try PythonServer(
            Self.handler, in: folder, certificate: (certificates.certificate, certificates.key),
            port: port, arguments: [file, requests])
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

    package func stop() { server.stop() }
}
