import ClusterTestSupport
import GatewayCore
import GatewayStorage
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayFleet
@testable import GatewayPostgres
@testable import GatewayRecords

/// What only the readers of a fleet's log can meet.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct FleetRecordsTests {
    private func records(
        _ cluster: ClusterFixture, deadline: Int64 = Int64(Patience.milliseconds),
        _ body: (EngineFixture, FleetRecords) async throws -> Void
    ) async throws {
        let engine = try await EngineFixture.node(1, of: cluster, deadline: deadline)
        try await engine.put(["hero"])
        try await body(engine, try #require(engine.engine.records as? FleetRecords))
        try await engine.stop()
    }

    /// Reads what is known up to `mark`.
    private func reader(_ cluster: ClusterFixture, _ mark: BatchMark?) throws -> PostgresRecords {
        try PostgresRecords(
            try cluster.address(user: "node1"), patience: Int64(Patience.milliseconds)
        ) { mark }
    }

    private func post(_ count: Int, _ name: String, _ engine: EngineFixture) async throws {
        let events = (0..<count).map { EngineFixture.event("\(name) \($0)") }
        _ = try await engine.changes.post(events, app: EngineFixture.app)
    }

    private func expectUnavailable(
        _ body: () async throws -> Void, at location: SourceLocation = #_sourceLocation
    ) async {
        let error = await #expect(throws: EngineError.self, sourceLocation: location) {
            try await body()
        }
        #expect(error?.code == "unavailable", sourceLocation: location)
    }

    @Test func `a registration is no row, and a listing goes over it`() async throws {
        try await records(try ClusterFixture()) { engine, records in
            for number in 0..<5 { _ = try await engine.register("c\(number)") }
            try await post(2, "a", engine)
            _ = try await engine.register("c9")
            #expect(records.head == 9)
            for sequence: UInt64 in [2, 6, 9] {
                #expect(try await records.logRow(sequence) == nil)
            }
            #expect(try await records.logRow(7)?.eventID == "a 0")
            // None of these pages is empty before the end.
            let first = try await records.log(after: 0, through: 9, limit: 1)
            let second = try await records.log(after: 1, through: 9, limit: 1)
            #expect(first.map(\.sequence) == [1] && second.map(\.sequence) == [7])
            #expect(try await records.log(after: 8, through: 9, limit: 1) == [])
        }
    }

    @Test func `the tag of a sequence is that of its batch`() async throws {
        let cluster = try ClusterFixture(slice: 8)
        try await records(cluster) { engine, records in
            try await post(5, "a", engine)
            try await post(7, "b", engine)
            let rows = try cluster.administration().rows(
                "SELECT first, last, chain FROM tg.log ORDER BY last")
            #expect(rows.count == 4)
            for row in rows {
                let position = LogPosition(last: try row.integer(1), chain: try row.uuid(2))
                for sequence in try row.integer(0)...position.last {
                    #expect(try await records.tag(of: UInt64(sequence)) == position.tag)
                }
            }
            for sequence: UInt64 in [14, 1 << 40, .max] {
                #expect(try await records.tag(of: sequence) == nil)
            }
        }
    }

    @Test func `a cursor of an old batch is judged by the tag that the log has`() async throws {
        let cluster = try ClusterFixture()
        try await records(cluster) { engine, records in
            try await post(4, "a", engine)
            try await post(4, "b", engine)
            let connection = try cluster.administration()
            let identity = try connection.rows("SELECT log_id FROM tg.log_identity").first
            let logID = try #require(try identity?.uuid(0))
            let rows = try connection.rows("SELECT last, chain FROM tg.log ORDER BY last")
            let positions = try rows.map {
                LogPosition(last: try $0.integer(0), chain: try $0.uuid(1))
            }
            #expect(positions.map(\.last) == [0, 1, 5, 9])
            // A node that has read the newest batch only.
            var start = LogStart()
            start.position = positions[3]
            let history = BatchHistory(start)
            history.note(logID: logID)
            history.use(records)
            for (tag, isHeld) in [(positions[2].tag, true), (positions[1].tag, false)] {
                let epoch = EpochID(ordinal: UInt32(truncatingIfNeeded: logID >> 96), nonce: tag)
                let cursor = Cursor(epoch: epoch, sequence: 3, tag: 0)
                if isHeld { #expect(!history.isKnown(cursor)) }
                try await history.find(cursor)
                #expect(history.judge(cursor).point == (isHeld ? .after(3) : .everything))
            }
        }
    }

    @Test func `what retention removed is gone, and the floor says so`() async throws {
        let cluster = try ClusterFixture(slice: 8)
        try await records(cluster) { engine, records in
            for number in 0..<4 { try await post(5, "\(number)", engine) }
            #expect(records.head == 21 && records.floor == 0)
            let rounds = try RoundFixture<RetentionRound>(
                try cluster.address(user: "node1"))
            let outcome = try rounds.run(RetentionRound(slicesKept: 1))
            #expect(outcome.floor == 16 && outcome.removals.contains("log_0"))
            let page = try await records.changes(
                app: EngineFixture.app, before: .max, after: 0, limit: 100)
            #expect(page.rows.map(\.sequence) == (17...21).reversed() && page.next == nil)
            // It came with the reading.
            #expect(records.floor == 16 && records.figures.floor == 16)
            let past = try await records.changes(
                app: EngineFixture.app, before: 7, after: 0, limit: 100)
            #expect(past.rows == [] && past.next == nil)
            #expect(try await records.logRow(3) == nil)
            #expect(try await records.tag(of: 3) == nil)
            #expect(try await records.tag(of: 16) != nil)
            #expect(try await records.lastSequence(acceptedBefore: 0) == 16)
            let rows = try await records.log(after: 2, through: 21, limit: 3)
            #expect(rows.first?.app == EngineFixture.app && (rows.first?.sequence ?? 0) > 8)
        }
    }

    @Test func `a floor that nobody reads is read again`() async throws {
        let cluster = try ClusterFixture()
        try await records(cluster) { _, records in
            try cluster.execute("UPDATE tg.log_floor SET floor = 1")
            #expect(records.floor == 0)
            try await eventually("read again") { records.floor == 1 }
        }
    }

    @Test func `a registration with an equal hash and another value is not listed`()
        async throws
    {
        let cluster = try ClusterFixture()
        try await records(cluster) { engine, records in
            for client in ["a", "b", "c"] { _ = try await engine.register(client) }
            _ = try await engine.register("d", hero: "owl")
            try cluster.execute(
                """
                UPDATE tg.registration
                SET attrs = (SELECT attrs FROM tg.registration WHERE client = 'd')
                """)
            for limit in [1, 2, 5] {
                let page = try await records.registrations(
                    app: EngineFixture.app, attribute: ("hero", "owl"), prefix: "", after: nil,
                    limit: limit)
                #expect(page.rows.map(\.key.client) == ["d"] && !page.hasMore)
            }
        }
    }

    @Test func `a page of registrations ends by its bytes`() async throws {
        let cluster = try ClusterFixture()
        try await records(cluster) { engine, _ in
            for number in 0..<9 { _ = try await engine.register("c\(number)") }
            let sizes = try cluster.administration().rows(
                "SELECT length(payload) FROM tg.registration ORDER BY client")
            let bytes = try sizes.prefix(3).reduce(0) { try $0 + $1.integer(0) }
            let mark = BatchMark(last: 0, tag: try await tag(at: 0, cluster))
            let records = try reader(cluster, mark)
            var listing = RegistrationListing(
                app: EngineFixture.app, attribute: nil, prefix: "", after: "", limit: 100,
                bytesMax: bytes)
            let page = try await records.registrations(listing)
            #expect(page.rows.map(\.client) == ["c0", "c1", "c2"] && page.hasMore)
            #expect(page.head == 10)
            (listing.after, listing.bytesMax) = ("c7", 1)
            let last = try await records.registrations(listing)
            #expect(last.rows.map(\.client) == ["c8"] && !last.hasMore)
        }
    }

    private func tag(at last: Int64, _ cluster: ClusterFixture) async throws -> UInt32 {
        let row = try cluster.administration().rows(
            "SELECT last, chain FROM tg.log WHERE last = \(last)"
        ).first
        return LogPosition(last: last, chain: try #require(try row?.uuid(1))).tag
    }

    @Test func `a server with another history is not believed`() async throws {
        let cluster = try ClusterFixture()
        try await records(cluster) { engine, _ in
            try await post(3, "a", engine)
            let tag = try await tag(at: 4, cluster)
            let range = BatchRange(first: 1, last: 9, .backwards)
            for (mark, isKnown) in [
                (BatchMark(last: 4, tag: tag), true), (BatchMark(last: 4, tag: tag ^ 1), false),
                (BatchMark(last: 3, tag: tag), false), (BatchMark(last: 9, tag: tag), false),
            ] {
                let records = try reader(cluster, mark)
                let batches = try? await records.batches(in: range)
                #expect(batches?.map(\.head.first) == (isKnown ? [2, 1] : nil))
            }
            let blind = try reader(cluster, nil)
            await #expect(throws: PostgresError.self) { try await blind.batches(in: range) }
            #expect(blind.floor == 0)
        }
    }

    @Test func `batches beyond the node's position are not read`() async throws {
        let cluster = try ClusterFixture()
        try await records(cluster) { engine, _ in
            try await post(3, "a", engine)
            try await post(3, "b", engine)
            let mark = BatchMark(last: 4, tag: try await tag(at: 4, cluster))
            let records = try reader(cluster, mark)
            for direction: BatchRange.Direction in [.forwards, .backwards] {
                let batches = try await records.batches(
                    in: BatchRange(first: 1, last: .max, direction))
                #expect(Set(batches.map(\.head.position.last)) == [1, 4])
            }
            #expect(try await records.head(of: 5) == nil)
            #expect(try await records.batch(of: 5) == nil)
            #expect(try await records.lastSequence(before: .max) == 4)
        }
    }

    @Test func `registrations that may still be lost are not listed`() async throws {
        let cluster = try ClusterFixture()
        let one = try await EngineFixture.node(1, of: cluster)
        let two = try await EngineFixture.node(2, of: cluster)
        let position = try await one.put(["hero"]).document.sequence
        try await two.reached(position)
        _ = try await one.register("phone")
        // From here on this node gets no rows, so it applies no record of a client that it holds.
        try await one.stop()
        _ = try await two.register("phone", hero: "owl")
        let history = BatchHistory()
        let row = try cluster.administration().rows("SELECT last, chain FROM tg.log WHERE last = 0")
            .first
        history.note(LogPosition(last: 0, chain: try #require(try row?.uuid(1))))
        for (node, isUpToDate) in [(one, false), (two, true)] {
            let records = try FleetRecords(
                try #require(node.log as? FleetLog), try cluster.address(user: "node1"),
                patience: Int64(Patience.milliseconds), history: history,
                hashes: try FleetHashes(secret: Array(repeating: 1, count: 32)),
                seal: RegistrationSeal(FleetKey(SecretBytes(copying: EngineFixture.fleetKey))),
                objection: { nil }, onUnreadableRow: { _, _ in })
            if isUpToDate {
                #expect(try await clients(records) == ["phone"])
            } else {
                await expectUnavailable { _ = try await clients(records) }
            }
        }
        try await two.stop()
    }

    @Test func `a row that cannot be read is left out of a listing`() async throws {
        let cluster = try ClusterFixture()
        try await records(cluster) { engine, records in
            for client in ["a", "b", "c"] { _ = try await engine.register(client) }
            try cluster.execute(
                """
                UPDATE tg.registration SET payload = (
                  SELECT payload FROM tg.registration WHERE client = 'a') WHERE client = 'b'
                """)
            #expect(try await clients(records) == ["a", "c"])
        }
    }

    private func clients(_ records: FleetRecords) async throws -> [String] {
        try await records.registrations(
            app: EngineFixture.app, attribute: nil, prefix: "", after: nil, limit: 5
        ).rows.map(\.key.client)
    }

    @Test func `no more readings wait than there is room for`() async throws {
        let cluster = try ClusterFixture(hasServer: true)
        let mark = BatchMark(last: 0, tag: try await tag(at: 0, cluster))
        let records = try reader(cluster, mark)
        #expect(try await records.head(of: 0)?.position.tag == mark.tag)
        cluster.primary.pause()
        // The server goes on when there was no room for six.
        let errors = await withTaskGroup(of: PostgresError?.self) { group in
            for _ in 0..<1_030 {
                group.addTask {
                    do throws(PostgresError) {
                        _ = try await records.head(of: 0)
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            return await group.reduce(into: [PostgresError?]()) { errors, error in
                errors.append(error)
                if errors.count == 6 { cluster.primary.resume() }
            }
        }
        #expect(errors.count { $0 == .busy } == 6)
        #expect(errors.count { $0 == nil } == 1_024)
        // Those that are over make room.
        #expect(try await records.head(of: 0) != nil)
    }

    @Test func `readings of a silent or stopped server fail in time, and go on after it`()
        async throws
    {
        let cluster = try ClusterFixture(hasServer: true)
        try await records(cluster, deadline: 3_000) { engine, records in
            try await post(3, "a", engine)
            #expect(try await records.logRow(2) != nil)
            cluster.primary.pause()
            // The first one ends by the deadline, and the others behind it with it.
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        await expectUnavailable { _ = try await records.logRow(2) }
                    }
                }
            }
            cluster.primary.resume()
            try await eventually("read again") {
                (try? await records.logRow(2))?.eventID == "a 0"
            }
            try cluster.primary.crash()
            await expectUnavailable { _ = try await records.logRow(2) }
            await expectUnavailable { _ = try await records.tag(of: 2) }
            await expectUnavailable { _ = try await clients(records) }
            records.close()
            await expectUnavailable { _ = try await records.logRow(2) }
        }
    }
}
