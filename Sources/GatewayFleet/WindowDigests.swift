import Dispatch
import GatewayCore
import Synchronization

/// Computes the ``WindowDigest`` of a node, on a queue of its own: ten million keys take longer than
/// a turn of a shared thread may last.
final class WindowDigests: Sendable {
    private struct State {
        var latest: WindowDigest?
        /// The versions whose digest is computed next; older ones that wait are dropped.
        var waiting: VersionCompactor?
        var isComputing = false
    }

    private let queue = DispatchQueue(label: "window-digest", qos: .utility)
    private let state = Mutex(State())

    /// The newest digest; `nil` before the first batch of a minute.
    var latest: WindowDigest? { state.withLock { $0.latest } }

    /// Computes the digest of versions soon.
    func compute(_ versions: VersionCompactor) {
        let begins = state.withLock { state in
            state.waiting = versions
            defer { state.isComputing = true }
            return !state.isComputing
        }
        if begins { queue.async { self.run() } }
    }

    private func run() {
        while let versions = next() {
            let digest = WindowDigest(versions)
            state.withLock { $0.latest = digest }
        }
    }

    private func next() -> VersionCompactor? {
        state.withLock { state in
            defer { state.waiting = nil }
            state.isComputing = state.waiting != nil
            return state.waiting
        }
    }
}
