import Testing

@testable import GatewayPostgres

/// The round of one reading, without a server.
@Suite struct RecordRoundTests {
    private static let known = BatchMark(last: 7, tag: 0xAABB_CCDD)
    private static let chain = UInt128(0xAABB_CCDD) << 96 | 5

    private func round(_ request: RecordRequest) -> RecordRound {
        RecordRound(request, known: Self.known)
    }

    @Test func `an answer counts only behind the history that the node has`() throws {
        for (chain, floor) in [(Self.chain, 3), (Self.chain ^ 1 << 96, nil), (nil, nil)]
            as [(UInt128?, Int64?)]
        {
            var round = round(.readHeads([5]))
            guard case .send(let requests) = round.begin() else {
                Issue.record("nothing is sent")
                return
            }
            #expect(requests == [.readState(at: 7, .shared), .readHeads([5])])
            switch round.receive(.success(.state(floor: 3, chain: chain))) {
            case .send(let more): #expect(floor != nil && more.isEmpty)
            case .fail(.connectionLost): #expect(floor == nil)
            default: Issue.record("neither goes on nor fails")
            }
            guard floor != nil else { continue }
            guard case .end(let outcome) = round.receive(.success(.heads([]))) else {
                Issue.record("does not end")
                return
            }
            #expect(outcome.floor == 3 && outcome.answer == .heads([]))
        }
    }

    @Test func `an error or an answer out of order ends the round`() {
        var first = round(.readHeads([]))
        _ = first.begin()
        guard case .fail(.deadline) = first.receive(.failure(.deadline)) else {
            Issue.record("goes on after an error")
            return
        }
        var second = round(.readHeads([]))
        _ = second.begin()
        guard case .fail(.unexpectedAnswer) = second.receive(.success(.heads([]))) else {
            Issue.record("believes an answer without a state")
            return
        }
    }

    @Test func `only a listing by an attribute is planned for its values`() {
        func listing(_ attribute: UInt128?) -> RecordRequest {
            .readRegistrations(
                RegistrationListing(
                    app: "a", attribute: attribute, prefix: "", after: "", limit: 1, bytesMax: 1))
        }
        #expect(listing(1).planMode == .custom)
        #expect(listing(nil).planMode == .shared)
        #expect(RecordRequest.readHeads([]).planMode == .shared)
    }

    @Test func `a batch without records is the one that a log begins with`() throws {
        func batch(first: Int64, last: Int64, at: Int64) -> StoredBatch {
            StoredBatch(
                head: BatchHead(first: first, position: .init(last: last, chain: 0), at: at),
                body: [])
        }
        #expect(try batch(first: 0, last: 0, at: 0).records() == [])
        // A log that was moved begins at the floor of its source.
        #expect(try batch(first: 9, last: 9, at: 0).records() == [])
        #expect(throws: PostgresError.unreadableRecord(.damaged, batch: 9)) {
            try batch(first: 9, last: 9, at: 1).records()
        }
    }
}
