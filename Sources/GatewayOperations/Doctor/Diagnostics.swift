import Foundation
import GatewayCore
import GatewayDocuments
import GatewayStorage
import GatewayTLS
import WidgetModel

/// Checks the requirements of a gateway on its own machine without changing anything. The gateway
/// may be running.
package struct Diagnostics: Sendable {
    let configuration: GatewayConfiguration
    /// The process that holds the data directory; `nil` if none does.
    package let holder: Int32?

    /// Prepares the checks for a gateway with this configuration.
    package init(_ configuration: GatewayConfiguration) {
        self.configuration = configuration
        holder = Self.holder(of: configuration.data + "/" + DirectoryLock.fileName)
    }

    /// All findings, most important first.
    package func findings() -> [DiagnosticResult] {
        [
            files, certificate, pushCertificates, directory, disk, database, keys, ports, limits,
            clock, names,
        ].flatMap {
            $0()
        }
    }

    /// A push service, and the file of certificates trusted there.
    package typealias Service = (name: String, host: String, port: Int, trust: String?)

    /// The push services whose hosts the configuration determines.
    package var pushServices: [Service] {
        let push = configuration.push
        var services = Set(push.apps.flatMap(\.environments)).sorted { $0.rawValue < $1.rawValue }
            .map { environment -> Service in
                let address = push.hosts[environment]
                let host =
                    environment == .production
                    ? "api.push.apple.com" : "api.sandbox.push.apple.com"
                return ("APNs", address?.host ?? host, address?.port ?? 443, push.trust)
            }
        guard !push.fcm.isEmpty else { return services }
        let host = push.fcmHost?.host ?? "fcm.googleapis.com"
        services.append(("FCM", host, push.fcmHost?.port ?? 443, push.serviceTrust))
        let accounts = (try? PushFiles(push))?.fcm.values.map(\.tokens) ?? []
        for endpoint in Set(accounts).sorted(by: { $0.url < $1.url }) {
            services.append(("FCM", endpoint.host, Int(endpoint.port), push.serviceTrust))
        }
        return services
    }

    // MARK: Configuration and certificate

    private func files() -> [DiagnosticResult] {
        do {
            try configuration.checkFiles()
            return [
                DiagnosticResult(
                    .ok, subject: "configuration",
                    what: configuration.isDevelopment ? "none: development mode" : "valid")
            ]
        } catch let faults as Faults {
            return faults.list.map {
                DiagnosticResult(
                    .fail, subject: "configuration", what: $0.description,
                    remedy: "Correct it; `timeline-gateway check-config` reports the same.")
            }
        } catch {
            return [
                DiagnosticResult(
                    .fail, subject: "configuration", what: "\(error)",
                    remedy: "Correct the named file.")
            ]
        }
    }

    private func certificate() -> [DiagnosticResult] {
        guard case .files(_, let key) = configuration.certificates,
            let context = try? configuration.tlsContext(
                now: Int64(Date().timeIntervalSince1970))
        else { return [] }
        var findings = [
            Self.validity(
                "certificate", context.notAfter,
                ended: "Install a new one at tls.certificate and tls.key; clients reject this one.",
                ending: "Renew it; a running gateway reloads it automatically.")
        ]
        if let host = publicHost, !context.isCertificate(of: host) {
            findings.append(
                DiagnosticResult(
                    .fail, subject: "certificate",
                    what: "is not valid for \(host), which clients connect to",
                    remedy: "Get one for that name, or set publicURL to one of its names."))
        }
        // systemd's access list for a service shows as rights of the group.
        let isCredential = key.hasPrefix("/run/credentials/")
        if let mode = Self.mode(key), mode & (isCredential ? 0o007 : 0o077) != 0 {
            findings.append(
                DiagnosticResult(
                    .warn, subject: "certificate",
                    what: "its key \(key) has mode \(String(mode, radix: 8))",
                    remedy: "Restrict it to its owner: chmod 600."))
        }
        return findings
    }

    /// The certificates that identify apps to APNs.
    private func pushCertificates() -> [DiagnosticResult] {
        let ends = (try? PushFiles(configuration.push))?.certificateEnds ?? [:]
        return ends.sorted { $0.key < $1.key }.map { app, ends in
            Self.validity(
                "APNs certificate of \(app)", ends,
                ended: "Get a new one from Apple; APNs rejects pushes with this one.",
                ending: "Get a new one from Apple; a running gateway reloads it automatically.")
        }
    }

    /// `ended` is the remedy after it has expired, `ending` the remedy if it expires soon.
    private static func validity(
        _ subject: String, _ notAfter: Date, ended: String, ending: String
    ) -> DiagnosticResult {
        let days = Int((notAfter.timeIntervalSinceNow / 86_400).rounded(.down))
        let ends = "expires \(timestamp(Int64(notAfter.timeIntervalSince1970) * 1000))"
        return switch days {
        case ..<0:
            DiagnosticResult(
                .fail, subject: subject, what: "has expired: it \(ends)", remedy: ended)
        case ..<14:
            DiagnosticResult(.warn, subject: subject, what: "\(ends), in \(days) d", remedy: ending)
        default: DiagnosticResult(.ok, subject: subject, what: "\(ends), in \(days) d")
        }
    }

    /// The host of the public URL; `nil` if none is stated.
    private var publicHost: String? {
        guard let url = configuration.publicURL else {
            let host = configuration.listen.host
            return ["0.0.0.0", "::", ""].contains(host) ? nil : host
        }
        return URL(string: url)?.host
    }

    // MARK: The data directory

    private func directory() -> [DiagnosticResult] {
        let path = configuration.data
        guard let mode = Self.mode(path) else {
            return [
                DiagnosticResult(
                    .ok, subject: "data directory", what: "\(path) is created at the first start")
            ]
        }
        var findings: [DiagnosticResult] = []
        if mode & 0o077 != 0 {
            findings.append(
                DiagnosticResult(
                    .warn, subject: "data directory",
                    what: "\(path) has mode \(String(mode, radix: 8))",
                    remedy: "Restrict it to its owner: chmod 700."))
        }
        let open = DataDirectory(path).privateFiles.filter {
            (Self.mode(path + "/" + $0) ?? 0) & 0o077 != 0
        }
        if !open.isEmpty {
            findings.append(
                DiagnosticResult(
                    .fail, subject: "data directory",
                    what: "others may read or write \(open.prefix(4).joined(separator: ", "))"
                        + (open.count > 4 ? " and \(open.count - 4) more" : ""),
                    remedy:
                        "Restrict them to their owner: chmod 600. If others may have read them, rotate "
                        + "the keys: `timeline-gateway keys rotate`."))
        }
        if DataDirectory.exists(path + "/.restoring") {
            findings.append(
                DiagnosticResult(
                    .fail, subject: "data directory", what: "a restore into it was interrupted",
                    remedy: "Empty it and restore again."))
        }
        if findings.isEmpty {
            findings.append(
                DiagnosticResult(
                    .ok, subject: "data directory", what: "\(path) is private to its owner"))
        }
        return findings
    }

    private func disk() -> [DiagnosticResult] {
        var status = statvfs()
        let path =
            DataDirectory.exists(configuration.data)
            ? configuration.data : DataDirectory.parent(of: configuration.data)
        guard statvfs(path, &status) == 0 else {
            return [
                DiagnosticResult(
                    .fail, subject: "disk",
                    what: "\(path) cannot be checked: \(String(cString: strerror(errno)))",
                    remedy: "Use a directory on an existing disk.")
            ]
        }
        let free = Double(status.f_bavail) * Double(status.f_frsize)
        let used = Double(DurableFiles.Listed(path, DataDirectory.databaseName)?.bytes ?? 0)
        // The size of a full log of small changes with its index.
        let wanted = max(0, Double(configuration.retentionChanges) * 600 - used) + 256e6
        let words = "\(Self.megabytes(free)) free"
        var findings: [DiagnosticResult] = []
        if free < 256e6 {
            findings.append(
                DiagnosticResult(
                    .fail, subject: "disk", what: words,
                    remedy: "Free space: on a full disk every post fails with 503."))
        } else if free < wanted {
            findings.append(
                DiagnosticResult(
                    .warn, subject: "disk",
                    what:
                        "\(words), and a log of retention.changes may take \(Self.megabytes(wanted))",
                    remedy: "Free space, or lower retention.changes."))
        } else {
            findings.append(DiagnosticResult(.ok, subject: "disk", what: words))
        }
        if status.f_files > 0, status.f_favail < 1_000 {
            findings.append(
                DiagnosticResult(
                    .fail, subject: "disk", what: "\(status.f_favail) inodes free",
                    remedy: "Remove small files from that file system."))
        }
        return findings
    }

    private var checks: StartChecks { StartChecks(configuration: configuration) }

    private func database() -> [DiagnosticResult] {
        let path = configuration.data + "/" + DataDirectory.databaseName
        do {
            _ = try checks.database()
            guard DataDirectory.exists(path) else { return [] }
            return try store(path)
        } catch let loss as DataDirectoryLoss {
            return loss.parts.map(Self.lost)
        } catch StoreError.missing {
            return [Self.lost(.database)]
        } catch {
            return [
                DiagnosticResult(
                    .fail, subject: "database", what: "cannot be read: \(error)",
                    remedy: "Run this as the gateway's user."
                )
            ]
        }
    }

    private func store(_ path: String) throws -> [DiagnosticResult] {
        let copy: StoreCopy
        do {
            copy = try StoreCopy(glancingAt: path)
            try readAll(tries: holder == nil ? 1 : 3)
        } catch let loss as DataDirectoryLoss {
            throw loss
        } catch let error as StoreError where error.isUnavailable {
            // An error about missing tables is more informative.
            _ = try SQLiteStore(readingOnly: configuration.data)
            throw error
        } catch StoreError.newerVersion {
            return [
                DiagnosticResult(
                    .fail, subject: "database", what: "\(StoreError.newerVersion)",
                    remedy: "Run the version that wrote it, or a newer one.")
            ]
        } catch {
            let reason =
                if case StoreError.corrupt(let reason) = error { reason } else { "\(error)" }
            return [
                DiagnosticResult(
                    .fail, subject: "database", what: "is damaged: \(reason)",
                    remedy: "Check the disk, then restore a backup: `timelinectl restore`.")
            ]
        }
        return [
            DiagnosticResult(
                .ok, subject: "database",
                what: "intact: log up to \(copy.head), \(copy.clients) clients of "
                    + "\(copy.apps) apps")
        ]
    }

    /// Reads what a start would read from the store. `tries` is more than one while a gateway runs,
    /// which may remove the beginning of the log meanwhile.
    private func readAll(tries: Int) throws {
        let store = try SQLiteStore(readingOnly: configuration.data)
        // The next start migrates an older schema first.
        guard try store.hasNewestSchema() else { return }
        do {
            try checks.rings(knownTo: store)
            try checks.log(of: store)
        } catch  where tries > 1 {
            try readAll(tries: tries - 1)
        }
    }

    private func keys() -> [DiagnosticResult] {
        checks.rings.compactMap { name, _ in
            do {
                try checks.keys(of: name)
                return nil
            } catch {
                return DiagnosticResult(
                    .fail, subject: "keys", what: "of \(name.rawValue)/ cannot be read: \(error)",
                    remedy:
                        "Restore the file from a backup. Without one, remove \(name.rawValue)/ring.json "
                        + "and files without a key, and start once with `timeline-gateway serve "
                        + "--new`: it uses the remaining keys, or creates new ones.")
            }
        }
    }

    private static func lost(_ part: DataDirectoryLoss.Part) -> DiagnosticResult {
        DiagnosticResult(
            .fail, subject: part == .database ? "database" : "keys", what: "missing: \(part)",
            remedy: DataDirectoryLoss.remedy)
    }
}
