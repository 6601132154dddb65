import GatewayCore

/// A client's contact with one gateway of several, since that gateway started.
package struct NodeContact: Sendable, Equatable, Codable {
    /// The number of its open streams, and of its polls that wait.
    package var streams = 0
    /// Whether one of the streams is for all kinds.
    package var isStreaming = false
    /// The highest cursor that it acknowledged, or resumed at; 0 for none.
    package var confirmed: UInt64 = 0
    /// The sequences up to which polls, and streams that have ended, told it everything.
    package var polled: UInt64 = 0
    package var streamed: UInt64 = 0
    /// The time at which it was last seen, in milliseconds since 1970.
    package var seenAt: Int64 = 0

    package init() {}

    /// The same without positions in the log.
    var withoutPositions: NodeContact {
        var contact = self
        (contact.confirmed, contact.polled, contact.streamed) = (0, 0, 0)
        return contact
    }

    func add(to hearing: inout DeliveryProgress) {
        hearing.confirmed(upTo: confirmed)
        if polled > 0 { hearing.polled(upTo: polled, kinds: nil) }
        if streamed > 0 { hearing.streamed(upTo: streamed, kinds: nil) }
    }
}

/// Clients at several gateways that share a log: each tells the one that leads of its own.
extension Registry {
    /// Returns the contacts with this gateway that changed since the last call, or all.
    package func takeContacts(all: Bool) -> [(key: ClientKey, contact: NodeContact)] {
        parts.flatMap { part in
            part.withLock { part in
                defer { part.changed = [] }
                let keys = all ? part.contacted : part.changed ?? []
                return keys.map { (key: $0, contact: part.contact(of: $0)) }
            }
        }
    }

    /// Records when a client was last seen, at any gateway, in milliseconds since 1970.
    func noteStored(_ key: ClientKey, seenAt: Int64) {
        withPart(of: key) { part in
            let known = part.records[key]?.contact.at ?? 0
            part.records[key]?.contact.at = max(known, seenAt)
        }
    }

    /// Records a registered client's contact with another gateway, as if it had been with this one.
    /// Returns the previous contact and the one recorded now; `nil` for an unknown client.
    package func note(
        _ contact: NodeContact, of key: ClientKey, at node: String
    ) -> (before: NodeContact, now: NodeContact)? {
        withPart(of: key) { part in
            let known = part.elsewhere[key]?[node]
            // The streams of a client that was removed are yet to end.
            guard part.records[key] != nil || known != nil else { return nil }
            if var hearing = part.records[key]?.hearing {
                contact.add(to: &hearing)
                part.records[key]?.hearing = hearing
            }
            let before = known ?? NodeContact()
            // A stream matters once the client is pushed to, and then until it ends.
            var contact = contact
            let isPushable = part.records[key]?.record.isPushable ?? false
            contact.isStreaming = contact.isStreaming && (before.isStreaming || isPushable)
            let isGone = part.records[key] == nil && contact.streams == 0
            part.elsewhere[key, default: [:]][node] = isGone ? nil : contact
            if part.elsewhere[key]?.isEmpty == true { part.elsewhere[key] = nil }
            return (before, contact)
        }
    }

    /// Forgets the contacts of clients with another gateway, or all; returns the clients whose
    /// stream there matters, once for each.
    package func forgetContacts(at node: String?) -> [ClientKey] {
        parts.flatMap { part in
            part.withLock { part in
                var streaming: [ClientKey] = []
                for (key, contacts) in part.elsewhere {
                    for (name, contact) in contacts where node == nil || name == node {
                        part.elsewhere[key]?[name] = nil
                        if contact.isStreaming { streaming.append(key) }
                    }
                    if part.elsewhere[key]?.isEmpty == true { part.elsewhere[key] = nil }
                }
                return streaming
            }
        }
    }
}
