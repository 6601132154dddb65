import Foundation
import GatewayTestSupport

/// Losses of stored data.
extension RowContext {
    /// The log loses its end, and those who could not know of it resume first (finding V3).
    func lostTail() throws {
        let gateway = try GatewayProcess()
        let story = try LogLossStory(self, gateway, of: gateway)
        let copy = try story.fallBehind()
        gateway.kill()
        try gateway.replace(by: copy)
        story.campaign.expectLostLog()
        try gateway.start()
        // Those with the older cursors first; the newer ones prove the loss only later.
        story.campaign.listen(story.near, &generator)
        pauseRandomly(0.5, 3)
        story.campaign.listen(story.far, &generator)
        pause(seconds: 1)
        try story.campaign.settle()
        report("clients that resumed first", story.near.count)
    }

    /// Files of the data directory are damaged while the gateway is down.
    func damage() throws {
        let damage = Damage.allCases[Int(seed % UInt64(Damage.allCases.count))]
        let gateway = try GatewayProcess()
        let story = try LogLossStory(self, gateway, of: gateway)
        let copy = try story.fallBehind()
        if generator.happens(30) { _ = gateway.terminate() } else { gateway.kill() }
        try apply(damage, to: gateway, copy: copy)
        report("damage", damage.rawValue)
        story.campaign.expectLostLog()
        try gateway.launch()
        let starts = gateway.waitUntilReady()
        report("outcome", starts ? "started" : "refused")
        if !starts {
            let words = gateway.standardErrorTail
            story.campaign.recorder.require(
                gateway.exit == .status(1) && !words.isEmpty,
                "it neither starts nor exits with 1 and a reason: "
                    + "\(String(describing: gateway.exit)) \(words)")
            // An operator puts the copy from before then in its place.
            try gateway.replace(by: copy)
            try newEpoch(gateway)
            try gateway.start()
        }
        story.campaign.listen(story.far.shuffled(using: &generator), &generator)
        story.campaign.listen(story.near, &generator)
        pause(seconds: 1)
        try story.campaign.settle()
    }

    private enum Damage: String, CaseIterable {
        case walCut = "WAL cut"
        case walFlipped = "WAL byte flipped"
        case walGone = "WAL gone"
        case shmGarbage = "shared memory file garbage"
        case databaseFlipped = "database byte flipped"
        case databaseCut = "database cut"
        case olderCopy = "older copy and epoch new"
    }

    private func apply(_ damage: Damage, to gateway: GatewayProcess, copy: String) throws {
        let database = gateway.data + "/store.sqlite"
        let wal = database + "-wal"
        switch damage {
        case .walCut: try change(wal) { $0.removeLast(generator.below($0.count + 1)) }
        case .walFlipped: try flip(wal)
        case .walGone: try? FileManager.default.removeItem(atPath: wal)
        case .shmGarbage:
            try change(database + "-shm") { bytes in
                for index in bytes.indices { bytes[index] = UInt8(generator.below(256)) }
            }
        case .databaseFlipped: try flip(database)
        case .databaseCut: try change(database) { $0.removeLast($0.count / 2) }
        case .olderCopy:
            try gateway.replace(by: copy)
            try newEpoch(gateway)
        }
    }

    private func newEpoch(_ gateway: GatewayProcess) throws {
        let (exit, output) = try GatewayProcess.run(["epoch", "new", "--data", gateway.data])
        campaign?.recorder.require(exit == .status(0), "epoch new: \(output)")
    }

    private func flip(_ path: String) throws {
        try change(path) { bytes in
            guard !bytes.isEmpty else { return }
            bytes[generator.below(bytes.count)] ^= 1 << UInt8(generator.below(8))
        }
    }

    /// Changes the bytes of a file, if it is there.
    private func change(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
        guard let data = FileManager.default.contents(atPath: path) else { return }
        var bytes = Array(data)
        body(&bytes)
        try Data(bytes).write(to: URL(filePath: path))
    }

    /// The power is lost: of what was written to the database and its log and not synced, some is
    /// kept, some torn and some gone.
    ///
    /// Renamed and newly made files count as kept: only the contents of the two are rebuilt.
    func powerLoss() throws {
        let names = ["/store.sqlite", "/store.sqlite-wal"]
        let folder = try GatewayProcess.temporaryDirectory()
        let (data, log) = (folder + "/data", folder + "/strace")
        let gateway = try GatewayProcess(
            data: data,
            wrapper: [
                "strace", "-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", "1000000", "-o", log,
                "-e", "signal=none", "-e", "trace=execve,pwrite64,ftruncate,fdatasync,fsync",
            ], startsNow: false)
        // The gateway is not the process started here, but that one's child.
        defer { killTraced(gateway, log: log) }
        try gateway.start()
        var journals = names.map { WriteJournal(path: $0, content: []) }
        let campaign = try startCampaign(on: gateway)
        try repeatFault(on: campaign) {
            pauseRandomly(0.3, 2)
            killTraced(gateway, log: log)
            count("losses of power")
            let lines = Array(FileManager.default.contents(atPath: log) ?? Data())
                .split(separator: UInt8(ascii: "\n"))
            for (index, name) in names.enumerated() {
                for line in lines { journals[index].read(line) }
                let content = journals[index].contentAfterLoss(using: &generator)
                count("unsynced writes kept", journals[index].kept)
                count("torn", journals[index].torn)
                count("dropped", journals[index].dropped)
                try Data(content).write(to: URL(filePath: data + name))
                journals[index] = WriteJournal(path: name, content: content)
            }
            // Shared memory does not outlive a loss of power.
            try? FileManager.default.removeItem(atPath: data + "/store.sqlite-shm")
            try gateway.start()
        }
    }

    /// Kills the gateway that strace watches, whose log begins with its process id; strace then ends
    /// on its own.
    private func killTraced(_ gateway: GatewayProcess, log: String) {
        guard gateway.exit == nil, let file = try? FileHandle(forReadingFrom: URL(filePath: log)),
            let head = try? file.read(upToCount: 20),
            let pid = Int32(
                String(decoding: head.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
        else { return }
        Glibc.kill(pid, SIGKILL)
        gateway.waitForExit()
    }
}
