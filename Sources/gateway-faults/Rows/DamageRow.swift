import Foundation
import GatewayTestSupport

/// Files of the data directory are damaged while the gateway is down.
enum DamageRow {
    private enum Damage: String, CaseIterable {
        case walCut = "WAL cut"
        case walFlipped = "WAL byte flipped"
        case walGone = "WAL gone"
        case shmGarbage = "shared memory file garbage"
        case databaseFlipped = "database byte flipped"
        case databaseCut = "database cut"
        case olderCopy = "older copy and epoch new"
    }

    static func run(_ context: RowContext) throws {
        let damage = Damage.allCases[Int(context.seed % UInt64(Damage.allCases.count))]
        let gateway = try GatewayProcess()
        let story = try LogLossStory(context, gateway)
        try story.change()
        try story.resume(story.campaign.clients)
        let copy = try story.copyStopped()
        try gateway.start()
        try story.change()
        try story.resume(story.far)
        if context.generator.happens(30) { _ = gateway.terminate() } else { gateway.kill() }
        try apply(damage, story, copy, context)
        context.figures.append(("damage", damage.rawValue))
        story.campaign.expectLostLog()
        try gateway.launch()
        guard gateway.waitUntilReady(seconds: 30) else {
            let words = gateway.standardErrorTail
            story.campaign.recorder.require(
                gateway.exit == .status(1) && !words.isEmpty,
                "it neither starts nor refuses with 1 and a reason: "
                    + "\(String(describing: gateway.exit)) \(words)")
            context.figures.append(("outcome", "refused"))
            // An operator takes the copy from before then.
            try story.replaceData(by: copy)
            try newEpoch(gateway, story)
            try gateway.start()
            return try finish(story)
        }
        context.figures.append(("outcome", "started"))
        try finish(story)
    }

    private static func finish(_ story: LogLossStory) throws {
        story.listen(story.far.shuffled(using: &story.context.generator))
        story.listen(story.near)
        pause(seconds: 1)
        try story.campaign.settle()
    }

    private static func newEpoch(_ gateway: GatewayProcess, _ story: LogLossStory) throws {
        let (exit, output) = try GatewayProcess.run(["epoch", "new", "--data", gateway.data])
        story.campaign.recorder.require(exit == .status(0), "epoch new: \(output)")
    }

    private static func apply(
        _ damage: Damage, _ story: LogLossStory, _ copy: String, _ context: RowContext
    ) throws {
        let data = story.gateway.data
        let (database, wal) = (data + "/store.sqlite", data + "/store.sqlite-wal")
        switch damage {
        case .walCut: try change(wal) { $0.removeLast(context.generator.below($0.count + 1)) }
        case .walFlipped: try flip(wal, context)
        case .walGone: try? FileManager.default.removeItem(atPath: wal)
        case .shmGarbage:
            try change(data + "/store.sqlite-shm") { bytes in
                for index in bytes.indices { bytes[index] = UInt8(context.generator.below(256)) }
            }
        case .databaseFlipped: try flip(database, context)
        case .databaseCut: try change(database) { $0.removeLast($0.count / 2) }
        case .olderCopy:
            try story.replaceData(by: copy)
            try newEpoch(story.gateway, story)
        }
    }

    private static func flip(_ path: String, _ context: RowContext) throws {
        try change(path) { bytes in
            guard !bytes.isEmpty else { return }
            bytes[context.generator.below(bytes.count)] ^= 1 << UInt8(context.generator.below(8))
        }
    }

    /// Changes the bytes of a file, if it is there.
    private static func change(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
        guard let data = FileManager.default.contents(atPath: path) else { return }
        var bytes = Array(data)
        body(&bytes)
        try Data(bytes).write(to: URL(filePath: path))
    }
}
