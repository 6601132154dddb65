import WidgetModel

/// Keys, configuration, limits and resource usage of the gateway; nothing in it is a secret.
package struct SystemStatus: Codable, Sendable {
    package var time = ""
    package var version = JSONMap<String>()
    package var keys: [Key] = []
    package var certificateEnds = ""
    package var pushCertificates: [PushCertificate] = []
    package var configuration: JSONValue = .null
    package var limits: JSONValue = .null
    package var node = Node()
    package var log = Log()
    package var windows: [Window] = []

    package init() {}

    package struct Key: Codable, Sendable {
        package var use = ""
        package var kid = ""
        package var algorithm = ""
        /// `published`, `signing` or `retiring`.
        package var state = ""
        package var since: String?
        package var until: String?

        package init() {}
    }

    /// The client certificate of an app for APNs.
    package struct PushCertificate: Codable, Sendable {
        package var app = ""
        package var ends = ""

        package init() {}
    }

    /// The process.
    package struct Node: Codable, Sendable {
        package var listen = ""
        package var admin = ""
        package var adminIsTLS = false
        package var development = false
        /// The highest sequence applied by each event loop.
        package var positions: [UInt64] = []
        package var streams = 0
        package var started = ""
        package var cpuSeconds = 0.0
        package var residentBytes = 0.0
        package var openFiles = 0.0
        package var openFilesMax = 0.0

        package init() {}
    }

    package struct Log: Codable, Sendable {
        package var head: UInt64 = 0
        package var floor: UInt64 = 0
        package var commits = 0
        package var failedCommits = 0
        package var refusedJobs = 0
        package var slowestCommitSeconds = 0.0
        package var databaseBytes: Int64 = 0
        package var walBytes: Int64 = 0

        package init() {}
    }

    /// The version window of an app.
    package struct Window: Codable, Sendable {
        package var app = ""
        package var keys = 0
        package var keysMax = 0
        package var floor: UInt64 = 0

        package init() {}
    }
}

/// The answer to a probe.
package struct HealthStatus: Codable, Sendable {
    package var status: String
    /// The parts of the gateway that fail.
    package var failing: [String]

    package init(status: String, failing: [String]) {
        (self.status, self.failing) = (status, failing)
    }
}
