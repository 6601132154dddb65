import Dispatch
import GatewayCore
import Synchronization

/// Seals the versions of the log's entries, once for all event loops and the push loop.
///
/// It has a queue of its own, because merging a million versions takes longer than a turn of a
/// shared thread may last. If it waited for other work, such as the documents of an app, it would
/// hold up the writes of all apps (see ``EngineLog/backlogMax``).
final class VersionSealer: Sendable {
    let queue = DispatchQueue(label: "versions")
    /// Used on the queue only.
    private let compactor: Mutex<VersionCompactor>
    private let reachedPosition: Atomic<UInt64>
    private let loops: [ShardLoop]
    private let push: PushLoop?

    /// - Parameter compactor: A compactor that has applied what the loops have applied.
    init(_ compactor: VersionCompactor, loops: ShardLoops, push: PushLoop?) {
        reachedPosition = Atomic(compactor.position)
        self.compactor = Mutex(compactor)
        self.loops = loops.all
        self.push = push
    }

    /// The sequence of the last entry whose versions are recorded.
    var position: UInt64 { reachedPosition.load(ordering: .relaxed) }

    /// Records the versions of entries, in order. They must have been handed to the loops before: a
    /// loop adopts versions only behind the entries that they follow from.
    func submit(_ messages: [LogMessage]) {
        queue.async {
            for case .entry(let entry) in messages {
                let sealed = self.compactor.withLock { $0.apply(entry) }
                self.reachedPosition.store(entry.sequence, ordering: .relaxed)
                guard let sealed else { continue }
                for loop in self.loops { loop.submit([.sealed(sealed)]) }
                self.push?.submit([.log(.sealed(sealed))])
            }
        }
    }
}
