import CPostgres
import Glibc

/// The servers of a cluster and how a node proves its identity to them, from a connection string.
///
/// Only two kinds of connection exist: a Unix socket, and TLS with `sslmode=verify-full`, where the
/// node has either a client certificate or a password that is used with SCRAM and channel binding.
package struct PostgresAddress:
    Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
    /// The reason why a connection string is refused.
    package struct Rejection: Error, Equatable, Sendable, CustomStringConvertible {
        /// Names the option and what to do; never quotes the connection string.
        package let description: String

        init(_ description: String) { self.description = description }
    }

    /// The seconds after which the server's silence ends a connection.
    static let silenceSeconds = 3

    /// The options of libpq for each server, in the order in which they are tried.
    package let servers: [[String: String]]
    /// The servers, another one first after each attempt: one that connects may not commit, like a
    /// former primary that is back.
    package func servers(at attempt: Int) -> [[String: String]] {
        let first = attempt % servers.count
        return Array(servers[first...] + servers[..<first])
    }

    /// The name of the login.
    package let user: String

    private static let accepted: Set = [
        "host", "port", "dbname", "user", "password", "passfile", "sslmode", "sslrootcert",
        "sslcert", "sslkey", "sslcrl", "target_session_attrs",
    ]

    /// Parses a connection string: a `postgres://` URL, or `key=value` pairs as libpq reads them.
    ///
    /// - Parameters:
    ///   - text: The connection string, with all servers.
    ///   - isReadOnlyAllowed: Whether a standby is accepted. Default: only a primary server.
    /// - Throws: ``Rejection`` for an option that is unknown or not safe.
    package init(_ text: String, isReadOnlyAllowed: Bool = false) throws(Rejection) {
        var options = try Self.parse(text)
        for name in options.keys.sorted() where !Self.accepted.contains(name) {
            throw Rejection("\(name): this option is not supported; remove it")
        }
        let hosts = Self.list(options["host"])
        let ports = Self.list(options["port"])
        guard !hosts.isEmpty else { throw Rejection("host: name at least one server") }
        guard ports.count <= 1 || ports.count == hosts.count else {
            throw Rejection("port: give one port, or one for each of the \(hosts.count) hosts")
        }
        guard let user = options["user"], let database = options["dbname"] else {
            throw Rejection("user, dbname: name the node's login and the database")
        }
        let isLocal = hosts.map { $0.hasPrefix("/") || $0.hasPrefix("@") }
        if isLocal.contains(false) {
            try Self.checkTLS(options)
            // With a certificate no password is sent, and with a password only SCRAM passes.
            if options["sslcert"] == nil { options["channel_binding"] = "require" }
        }
        options["target_session_attrs"] = isReadOnlyAllowed ? "any" : "read-write"
        self.user = user
        servers = hosts.indices.map { index in
            var server = options.merging(Self.sessionOptions) { $1 }
            server["dbname"] = database
            server["host"] = hosts[index]
            server["port"] = ports.count > 1 ? ports[index] : ports.first ?? "5432"
            if isLocal[index] { server["channel_binding"] = "prefer" }
            return server
        }
    }

    private static func checkTLS(_ options: [String: String]) throws(Rejection) {
        guard options["sslmode"] == "verify-full" else {
            throw Rejection("sslmode: must be verify-full unless every host is a Unix socket")
        }
        guard options["sslrootcert"] != nil else {
            throw Rejection("sslrootcert: name the file of the CA that signed the servers")
        }
        let hasCertificate = options["sslcert"] != nil && options["sslkey"] != nil
        let hasPassword = options["password"] != nil || options["passfile"] != nil
        guard hasCertificate != hasPassword else {
            throw Rejection(
                "sslcert and sslkey, or password or passfile: give one of the two, so that the node"
                    + " proves its identity with a certificate or with SCRAM")
        }
    }

    /// Bounds how long a dead server goes unnoticed, on both sides, and how long a statement waits
    /// for a lock. Statements are planned once: for few keys PostgreSQL would plan each execution
    /// anew, which costs more than all the rest (probe and append of one registration: 1.6 ms
    /// against 0.7 ms of server time).
    private static let sessionOptions = [
        "application_name": "timeline-gateway",
        "client_encoding": "UTF8",
        "gssencmode": "disable",
        "keepalives": "1", "keepalives_idle": "1", "keepalives_interval": "1",
        "keepalives_count": "\(silenceSeconds)",
        "tcp_user_timeout": "\(silenceSeconds * 1_000)",
        "connect_timeout": "2",
        "options": "-c lock_timeout=1000 -c statement_timeout=0 -c tcp_keepalives_idle=1"
            + " -c plan_cache_mode=force_generic_plan"
            + " -c tcp_keepalives_interval=1 -c tcp_keepalives_count=\(silenceSeconds)"
            + " -c tcp_user_timeout=\(silenceSeconds * 1_000)",
    ]

    private static func list(_ text: String?) -> [String] {
        (text ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            .filter { !$0.isEmpty }
    }

    // The options contain the password, so a log gets only these.

    /// The login and the names of the servers.
    package var description: String {
        "\(user) at " + servers.map { $0["host"] ?? "" }.joined(separator: ", ")
    }

    /// The same as ``description``.
    package var debugDescription: String { description }

    /// The same as ``description``.
    package var customMirror: Mirror { Mirror(self, children: ["": description]) }

    /// Returns the options that a connection string sets.
    private static func parse(_ text: String) throws(Rejection) -> [String: String] {
        guard let list = PQconninfoParse(text, nil) else {
            // The library's message quotes the string, which may contain a password.
            throw Rejection(
                "the connection string cannot be read; write postgres://USER@HOST/DATABASE")
        }
        defer { PQconninfoFree(list) }
        var options: [String: String] = [:]
        // Sound: the array ends with an element without keyword, and is freed after its strings
        // are copied.
        var option = list
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                options[String(cString: keyword)] = String(cString: value)
            }
            option += 1
        }
        return options
    }
}

extension [String: String] {
    /// Lends keys and values as two arrays of C strings, each ended by a null.
    func withCStrings<Result>(
        _ body: ([UnsafePointer<CChar>?], [UnsafePointer<CChar>?]) -> Result
    ) -> Result {
        // Sound: the copies live until `body` has returned.
        let keys = self.keys.map { strdup($0) }
        let values = self.values.map { strdup($0) }
        defer { for copy in keys + values { free(copy) } }
        return body(
            keys.map { UnsafePointer($0) } + [nil], values.map { UnsafePointer($0) } + [nil])
    }
}
