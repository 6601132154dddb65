/// The sequences up to which everything was sent, for a caller that treats its streams as one.
extension Shard {
    /// The sequence up to which no change of any app waits for the end of a collapse window.
    package var settled: UInt64 {
        apps.indices.reduce(position) { min($0, apps[$1].collapse.settled(at: position)) }
    }

    /// Returns whether any rule of an app has a collapse window.
    package func collapses(app name: String) -> Bool {
        number(ofApp: name).map { apps[$0].durations.contains { $0 > 0 } } ?? false
    }

    /// Returns whether a stream is closed, or takes no data.
    package func isLagging(_ id: StreamID) -> Bool {
        !isOpen(id) || streams[Int(id.slot)].isLagging
    }

    /// Returns the sequence up to which no change of an app waits for the end of a collapse window.
    package func settled(app name: String) -> UInt64 {
        number(ofApp: name).map { apps[$0].collapse.settled(at: position) } ?? position
    }
}

extension CollapseWindow {
    fileprivate func settled(at position: UInt64) -> UInt64 {
        oldestWaiting.map { $0 - 1 } ?? position
    }
}
