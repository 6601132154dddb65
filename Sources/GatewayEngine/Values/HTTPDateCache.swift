import GatewayCore
import GatewayDocuments
import Synchronization

/// The current date in HTTP's format (RFC 9110 section 5.6.7), formatted once a second.
package final class HTTPDateCache: Sendable {
    private let clock: GatewayClock
    private let last = Mutex((second: Int64.min, text: ""))

    package init(clock: GatewayClock) { self.clock = clock }

    /// The text of the current second.
    package var text: String {
        let second = clock.wallSeconds()
        return last.withLock { last in
            if last.second != second { last = (second, httpDate(second)) }
            return last.text
        }
    }
}
