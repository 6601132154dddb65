import GatewayCore
import WidgetModel

/// What the leader of several gateways that share a log does about clients of the others.
extension ClientDirectory {
    /// Records what clients did at another node.
    ///
    /// - Parameter era: The ordinal of the era of their positions.
    package func heard(
        _ contacts: [(key: ClientKey, contact: NodeContact)], at node: String, era: UInt32
    ) {
        let epoch = cursors.epoch
        var events: [PushLoop.Event] = []
        for (key, contact) in contacts {
            let contact = epoch.ordinal == era ? contact : contact.withoutPositions
            guard let (before, contact) = registry.note(contact, of: key, at: node) else {
                continue
            }
            if contact.seenAt > before.seenAt { registry.noteSeen(key, now: contact.seenAt) }
            if contact.isStreaming, !before.isStreaming {
                events.append(
                    .streamOpened(key, kinds: nil, resuming: contact.confirmed, in: epoch))
            } else if before.isStreaming, !contact.isStreaming {
                events.append(.streamEnded(key, kinds: nil))
            }
            guard registry.record(key)?.isPushable == true else { continue }
            if contact.confirmed > before.confirmed {
                events.append(.acknowledged(key, upTo: contact.confirmed, in: epoch))
            }
            if contact.polled > before.polled { events.append(.polled(key)) }
        }
        if !events.isEmpty { push?.submit(events) }
    }

    /// Forgets the streams of another node, which is gone, or of all: this gateway leads no more.
    package func forgetContacts(at node: String? = nil) {
        let streaming = registry.forgetContacts(at: node)
        push?.submit(streaming.map { .streamEnded($0, kinds: nil) })
    }

    /// The ordinal of the era in force.
    package var era: UInt32 { cursors.epoch.ordinal }
}
