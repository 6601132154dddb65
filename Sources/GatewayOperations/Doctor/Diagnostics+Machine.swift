import CLinux
import Foundation
import GatewayCore

extension Diagnostics {
    // MARK: Ports

    func ports() -> [DiagnosticResult] {
        let addresses = [
            ("listen", Optional(configuration.listen)), ("admin", configuration.admin),
            ("probes", configuration.probes), ("cluster.node", configuration.cluster?.node),
        ]
        return addresses.compactMap { option, address in
            guard let address, address.port > 0 else { return nil }
            let reason = Self.whyNotOpen(address)
            let isTaken = reason == EADDRINUSE
            switch (reason, holder) {
            case (nil, _): return DiagnosticResult(.ok, subject: option, what: "\(address) is free")
            case (_?, let pid?) where isTaken:
                return DiagnosticResult(
                    .ok, subject: option,
                    what: "\(address) is in use; the gateway is process \(pid)")
            case (let code?, _):
                return DiagnosticResult(
                    .fail, subject: option,
                    what: "\(address) cannot be opened: \(String(cString: strerror(code)))",
                    remedy: isTaken
                        ? "Another program uses it, and no gateway runs on the data directory; "
                            + "`ss -ltnp` shows which."
                        : "Use an address of this machine, and a port that this user may open.")
            }
        }
    }

    /// The error from opening a port here; `nil` if it can be opened.
    private static func whyNotOpen(_ address: Address) -> Int32? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address.host, "\(address.port)", &hints, &found) == 0,
            let place = found?.pointee
        else { return EADDRNOTAVAIL }
        defer { freeaddrinfo(found) }
        let descriptor = socket(
            place.ai_family, place.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        // As the gateway does: remnants of old connections do not prevent opening.
        var yes: Int32 = 1
        setsockopt(
            descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        // Without listening: no client should connect to a trial socket.
        return bind(descriptor, place.ai_addr, place.ai_addrlen) == 0 ? nil : errno
    }

    // MARK: Limits

    func limits() -> [DiagnosticResult] {
        [fileLimit, backlog].compactMap { $0 }
    }

    private var fileLimit: DiagnosticResult? {
        // A service has its own limits, which differ from those of a shell.
        let owner = holder.map { "/proc/\($0)/limits" } ?? "/proc/self/limits"
        guard let limits = try? String(contentsOfFile: owner, encoding: .utf8),
            let line = limits.split(separator: "\n").first(where: { $0.hasPrefix("Max open files") }
            )
        else { return nil }
        let words = line.dropFirst("Max open files".count).split(separator: " ")
        guard words.count >= 2 else { return nil }
        // A gateway raises its soft limit to the hard one when it starts.
        let text = holder == nil ? words[1] : words[0]
        let limit = text == "unlimited" ? Int.max : Int(text) ?? 0
        let whose = holder == nil ? "of this shell (no gateway runs)" : "of the gateway"
        let what = "the limit \(whose) is \(text) files"
        let advice = "(LimitNOFILE= of its systemd unit, ulimit -n)"
        let wanted = configuration.connectionsMax
        guard let budget = configuration.descriptorBudget(openFiles: limit) else {
            return DiagnosticResult(
                .fail, subject: "file limit", what: "\(what), too low to start",
                remedy: "Raise it \(advice).")
        }
        guard budget.connections < wanted else {
            return DiagnosticResult(.ok, subject: "file limit", what: what)
        }
        return DiagnosticResult(
            .warn, subject: "file limit",
            what:
                "\(what), which lowers limits.connections from \(wanted) to \(budget.connections)",
            remedy: "Raise it to \(wanted + budget.reserve) or more \(advice), or lower "
                + "limits.connections.")
    }

    private var backlog: DiagnosticResult? {
        let path = "/proc/sys/net/core/somaxconn"
        guard let text = try? String(contentsOfFile: path, encoding: .utf8),
            let count = Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
        else { return nil }
        guard count < 1_024 else {
            return DiagnosticResult(.ok, subject: "kernel", what: "somaxconn is \(count)")
        }
        return DiagnosticResult(
            .warn, subject: "kernel",
            what: "somaxconn is \(count): bursts of new connections may be refused",
            remedy: "Run sysctl -w net.core.somaxconn=4096.")
    }

    // MARK: Clock and names

    func clock() -> [DiagnosticResult] {
        switch gateway_clock_is_synchronised() {
        case 1:
            [DiagnosticResult(.ok, subject: "clock", what: "synchronised, according to the kernel")]
        case 0:
            [
                DiagnosticResult(
                    .warn, subject: "clock", what: "not synchronised, according to the kernel",
                    remedy:
                        "Run chrony or systemd-timesyncd: tokens, notifications and APNs depend on the "
                        + "time. For a container, run it on the host.")
            ]
        default: []
        }
    }

    func names() -> [DiagnosticResult] {
        var hosts = pushServices.map(\.host)
        if let url = configuration.publicURL, let host = URL(string: url)?.host {
            hosts.append(host)
        }
        return hosts.map { host in
            var hints = addrinfo()
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            var found: UnsafeMutablePointer<addrinfo>?
            let code = getaddrinfo(host, nil, &hints, &found)
            defer { if let found { freeaddrinfo(found) } }
            guard code != 0 else {
                return DiagnosticResult(.ok, subject: "DNS", what: "\(host) resolves")
            }
            return DiagnosticResult(
                .warn, subject: "DNS",
                what: "\(host) does not resolve: \(String(cString: gai_strerror(code)))",
                remedy: "Check /etc/resolv.conf and the name servers in it.")
        }
    }
}
