import Foundation

/// A real `timeline-gateway serve` in development mode, with a data directory of its own.
///
/// Whoever makes one calls ``end()``, on errors too.
final class GatewayUnderTest {
    /// The directory that holds everything of this run; removed by ``end()``.
    let directory: String
    /// The TLS port of 127.0.0.1.
    let port: UInt16
    private let adminPort: UInt16
    private let program: String
    private let cores: [Int]?
    private let launcher: [String]
    private var child: ChildProcess?

    /// Makes the directory; starts nothing.
    ///
    /// - Parameter launcher: A program and its arguments that starts the gateway's in its own
    ///   process; none to start that itself.
    init(program: String, cores: [Int]?, launcher: [String] = []) throws {
        self.program = program
        self.cores = cores
        self.launcher = launcher
        port = try Machine.freePort()
        var admin = try Machine.freePort()
        while admin == port { admin = try Machine.freePort() }
        adminPort = admin
        var template = Array((NSTemporaryDirectory() + "gateway-bench-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw BenchFailure("no temporary directory: \(String(cString: strerror(errno)))")
        }
        let path = template.dropLast().map(UInt8.init(bitPattern:))
        directory = String(decoding: path, as: UTF8.self)
    }

    /// The data directory.
    var data: String { directory + "/data" }
    /// The certificates clients trust.
    var ca: String { data + "/certs/ca.pem" }
    /// The server's certificate chain and key.
    var identity: (certificate: String, key: String) {
        (data + "/certs/server.pem", data + "/certs/server.key")
    }
    /// Process ids to measure.
    var processes: [pid_t] { child.map { [$0.pid] } ?? [] }

    /// Starts it and waits until it accepts connections.
    ///
    /// - Parameter options: Options of the configuration and their texts; none for the gateway's
    ///   defaults. Any need certificates, so the directory must have been served from before.
    func start(options: [String: String] = [:]) throws {
        let (output, errors) = (directory + "/output", directory + "/errors")
        var environment: [String: String] = [:]
        if !options.isEmpty {
            // With certificates named, it takes its whole configuration from the environment.
            for (option, text) in options {
                environment["TIMELINE_GATEWAY_" + Self.variable(option)] = text
            }
            environment["TIMELINE_GATEWAY_TLS_CERTIFICATE"] = identity.certificate
            environment["TIMELINE_GATEWAY_TLS_KEY"] = identity.key
            environment["TIMELINE_GATEWAY_LOCAL_ISSUER"] = "true"
        }
        let command =
            launcher + [
                program, "serve", "--data", data, "--listen", "127.0.0.1:\(port)",
                "--admin", "127.0.0.1:\(adminPort)",
            ]
        let child = try ChildProcess(
            command[0], Array(command.dropFirst()), cores: cores, output: output, errors: errors,
            environment: environment)
        self.child = child
        let end = monotonicNanoseconds() + 60_000_000_000
        while !Self.text(output).contains("ready https://") {
            try Interruption.check()
            guard child.isRunning, monotonicNanoseconds() < end else {
                throw BenchFailure(
                    "the gateway did not start:\n\(Self.text(errors).suffix(2_000))")
            }
            usleep(5_000)
        }
    }

    /// The name of the variable of an option, without the prefix: `STREAMS_STALL` of `streams.stall`.
    private static func variable(_ option: String) -> String {
        option.reduce(into: "") { name, character in
            if character.isUppercase { name.append("_") }
            name += character == "." ? "_" : character.uppercased()
        }
    }

    /// SIGTERM; returns when it has drained.
    ///
    /// - Throws: ``BenchFailure`` unless it exits with 0.
    func stop() throws {
        guard let child else { return }
        let status = child.stop()
        self.child = nil
        guard status == 0 else {
            throw BenchFailure("the gateway ended with \(status) on SIGTERM")
        }
    }

    /// Stops it in whatever state it is, and removes its directory.
    func end() {
        child?.stop(seconds: 5)
        child = nil
        try? FileManager.default.removeItem(atPath: directory)
    }

    // MARK: Tokens and metrics

    /// A token with `scope` for `app`.
    func token(app: String, scope: String) throws -> String {
        guard let token = try tokens(app, scope, []).first else { throw BenchFailure("no token") }
        return token
    }

    /// A `client` token for each of `clients`, in their order.
    func clientTokens(app: String, clients: [String]) throws -> [String] {
        let file = directory + "/clients"
        try clients.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
        let tokens = try tokens(app, "client", ["--subs-from", file])
        guard tokens.count == clients.count else { throw BenchFailure("tokens are missing") }
        return tokens
    }

    private func tokens(_ app: String, _ scope: String, _ more: [String]) throws -> [String] {
        let (output, errors) = (directory + "/tokens", directory + "/token-errors")
        defer { try? FileManager.default.removeItem(atPath: output) }
        let child = try ChildProcess(
            program,
            ["token", "--data", data, "--app", app, "--scope", scope, "--ttl", "12h"] + more,
            cores: nil, output: output, errors: errors)
        defer { child.stop(seconds: 0) }
        guard try child.wait(seconds: 300) == 0 else {
            throw BenchFailure("no tokens: \(Self.text(errors).suffix(2_000))")
        }
        return Self.text(output).split(separator: "\n").map(String.init)
    }

    /// Its metrics page, with the answer's head.
    func metricsPage() throws -> String { try AdminPage.get("/metrics", port: adminPort) }

    /// The value of one of its metrics; `nil` when it has none of that name.
    func metric(_ name: String) throws -> Double? {
        let page = try metricsPage()
        for line in page.split(separator: "\n") where line.hasPrefix(name + " ") {
            return line.split(separator: " ").last.flatMap { Double($0) }
        }
        return nil
    }

    private static func text(_ path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }
}
