import NIOCore

package struct ShardLoops: Sendable {
    package let all: [ShardLoop]
    private let byLoop: [ObjectIdentifier: ShardLoop]

    package var openStreams: Int { all.reduce(0) { $0 + $1.openStreams } }

    init(_ all: [ShardLoop]) {
        self.all = all
        byLoop = Dictionary(uniqueKeysWithValues: all.map { (ObjectIdentifier($0.loop), $0) })
    }

    /// The shard of a connection's loop.
    package func shard(of loop: any EventLoop) -> ShardLoop? {
        byLoop[ObjectIdentifier(loop)]
    }

    /// Ends a stream, or a poll that waits, whose place a newer one of its client has taken.
    package func end(_ replaced: Registry.OpenStream) {
        let shard = all[Int(replaced.loop)]
        shard.loop.execute { shard.endReplaced(replaced.id) }
    }
}
