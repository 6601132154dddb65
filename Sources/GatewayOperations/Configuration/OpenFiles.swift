import Foundation
import GatewayCore
import WidgetModel

/// The process's limit on open files (RLIMIT_NOFILE).
package enum OpenFiles {
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// The number of files that were open when the process began, except its standard streams: its
    /// parent may have passed some on, and they stay open. Counted at the first use.
    private static let inherited: Int = {
        let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        // The three streams, and the directory itself while it is read.
        return max(0, (open ?? 0) - 4)
    }()

    /// Raises the soft limit to the hard one, as far as the kernel allows. Returns the limit in
    /// force, minus the inherited files.
    package static func raiseLimit() -> Int {
        let inherited = inherited
        var limits = rlimit()
        guard getrlimit(resource, &limits) == 0 else { return unknownLimit }
        if limits.rlim_cur < limits.rlim_max {
            var raised = limits
            raised.rlim_cur = limits.rlim_max
            if setrlimit(resource, &raised) == 0 { limits = raised }
        }
        return max(0, Int(clamping: limits.rlim_cur) - inherited)
    }

    /// The assumed limit if the kernel does not report one.
    private static let unknownLimit = 256
}

extension GatewayConfiguration {
    /// The maximum number of connections to a plain port for operators or probes.
    private static let plainPortConnectionsMax = 64
    /// The maximum number of connections to the admin port with TLS.
    private static let adminConnectionsMax = 256
    /// The maximum number of connections to webhooks, and as many to the push services of browsers
    /// and FCM, which share none with them.
    private static let webhookConnectionsMax = 256

    /// Divides the available descriptors; `nil` if they are too few.
    func descriptorBudget(openFiles limit: Int) -> DescriptorBudget? {
        var ports = [
            admin.isLoopback ? Self.plainPortConnectionsMax : Self.adminConnectionsMax
        ]
        if probes != nil { ports.append(Self.plainPortConnectionsMax) }
        // Outside of development mode a reload may enable webhooks.
        let hasWebhooks =
            push.hasWebhooks || !push.webPush.isEmpty || !push.fcm.isEmpty || !isDevelopment
        return DescriptorBudget(
            limit: limit, connections: connectionsMax,
            needs: .init(
                threads: threads, operatorPorts: ports,
                webhooks: hasWebhooks ? 2 * Self.webhookConnectionsMax : 0,
                apnsApps: Set(push.apps.map(\.app)).count))
    }

    /// Lowers the connection limits to fit the available descriptors. Throws ``Faults`` if they are
    /// too few for any service.
    package mutating func fit(openFiles limit: Int) throws(Faults) {
        guard let budget = descriptorBudget(openFiles: limit) else {
            throw Faults(
                "limits.connections",
                "the limit of open files is \(limit), too low for a gateway with this "
                    + "configuration; raise it (LimitNOFILE= of its systemd unit, ulimit -n)")
        }
        connectionsMax = budget.connections
        connectionsPerAddressMax = connectionsPerAddressMax.map { min($0, budget.connections) }
        adminConnectionsMax = budget.operatorPorts.first ?? 1
        probeConnectionsMax = budget.operatorPorts.last ?? 1
        push.terms.webhooksMax = max(1, budget.webhooks / 2)
    }
}
