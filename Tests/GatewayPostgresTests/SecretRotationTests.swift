import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct SecretRotationTests {
    private static let timing: SecretTiming = {
        var timing = SecretTiming()
        timing.cacheTime = 300
        timing.signatureLifetime = 600
        timing.signingPeriod = 10_000
        return timing
    }()

    private func additions(
        _ rows: [SecretRow], at now: Int64, of kind: SecretKind
    ) -> [SecretRotation.Addition] {
        SecretRotation(rows, at: now, kinds: [kind], timing: Self.timing).additions
    }

    @Test func aSigningKeyIsPublishedLongBeforeItSigns() {
        let first = additions([], at: 50, of: .signing)
        #expect(first.map(\.lead) == [0])
        #expect(first.first?.newest == nil)
        let row = SecretRow(kind: "signing", name: "a", notBefore: 50)
        #expect(additions([row], at: 9_689, of: .signing).isEmpty)
        let second = additions([row], at: 9_690, of: .signing)
        #expect(
            second == [
                .init(kind: .signing, newest: "a", lead: 360, kept: 1, grace: 900)
            ])
        // The next one waits for this one to begin.
        let next = SecretRow(kind: "signing", name: "b", notBefore: 30_000)
        #expect(additions([next, row], at: 29_999, of: .signing).isEmpty)
    }

    @Test func ticketKeysOverlapAndHashKeysStay() {
        func rule(_ kind: SecretKind) -> [SecretRotation.Addition] {
            additions(
                [SecretRow(kind: kind.rawValue, name: "a", notBefore: 0)], at: 1 << 40, of: kind)
        }
        #expect(rule(.ticket) == [.init(kind: .ticket, newest: "a", lead: 60, kept: 3, grace: 0)])
        #expect(additions([], at: 0, of: .keyHash).count == 1)
        #expect(rule(.keyHash).isEmpty)
        #expect(Self.timing.rule(of: .ticket)?.period == 43_200)
        let ended = SecretRow(kind: "ticket", name: "a", notBefore: 0, notAfter: 9)
        #expect(!SecretRotation([ended], at: 8, kinds: [], timing: Self.timing).hasEnded)
        #expect(SecretRotation([ended], at: 9, kinds: [], timing: Self.timing).hasEnded)
    }

    /// A node that reads no more: first not ready and with nothing newer, then without a signature.
    @Test func aNodeThatIsCutOffUsesNothingNewer() throws {
        var secrets = SharedSecrets(kinds: [.signing], timing: Self.timing)
        #expect(secrets.unreadiness(at: 0) == .stale)
        func receive(_ rows: [SecretRow]) {
            secrets.receive(rows, serverTime: 1_000, sentAt: 5_000, receivedAt: 5_500) {
                row throws(SecretError) in
                guard let secret = SecretBytes(count: 1, fill: { _ in true }) else {
                    throw .cryptoFailed
                }
                return secret
            }
        }
        receive([])
        #expect(secrets.unreadiness(at: 6_000) == .missing(.signing))
        receive([
            SecretRow(kind: "signing", name: "old", notBefore: 900),
            SecretRow(kind: "signing", name: "soon", notBefore: 1_059),
            SecretRow(kind: "signing", name: "late", notBefore: 1_061),
        ])
        func name(_ now: Int64) -> String? { secrets.current(.signing, at: now)?.row.name }
        #expect(secrets.valid(.signing, at: 6_000).count == 3)
        #expect(name(6_000) == "old")
        #expect(name(64_499) == "old")
        #expect(name(64_500) == "soon")
        #expect(secrets.unreadiness(at: 65_000) == nil)
        #expect(secrets.unreadiness(at: 65_001) == .stale)
        #expect(name(365_000) == "soon")
        #expect(name(365_001) == nil)
    }

    @Test func aSecretIsUnwrappedOnceAndItsObjectGoesWithItsRow() throws {
        var secrets = SharedSecrets(kinds: [.ticket], timing: Self.timing)
        var opened: [String] = []
        func receive(_ names: [String]) {
            let rows = names.map {
                SecretRow(kind: "ticket", name: $0, notBefore: 1, wrapped: Array($0.utf8))
            }
            secrets.receive(rows, serverTime: 5, sentAt: 0, receivedAt: 0) {
                row throws(SecretError) in
                guard row.name != "bad", let secret = SecretBytes(count: 1, fill: { _ in true })
                else { throw .notAuthentic(kind: row.kind, name: row.name) }
                opened.append(row.name)
                return secret
            }
        }
        receive(["a", "b"])
        weak let first = secrets.valid(.ticket, at: 0).first { $0.row.name == "a" }?.secret
        receive(["a", "b"])
        #expect(opened.sorted() == ["a", "b"])
        #expect(first != nil)
        receive(["b", "bad"])
        #expect(first == nil)
        #expect(
            secrets.unreadiness(at: 0)
                == .unreadable(.notAuthentic(kind: "ticket", name: "bad")))
        receive(["b"])
        #expect(secrets.unreadiness(at: 0) == nil)
    }

    @Test func aServersClockThatIsSetBackTakesNothingOutOfUse() {
        var secrets = SharedSecrets(kinds: [.signing], timing: Self.timing)
        let rows = [
            SecretRow(kind: "signing", name: "old", notBefore: 900, notAfter: 2_000),
            SecretRow(kind: "signing", name: "new", notBefore: 1_000),
        ]
        func receive(_ rows: [SecretRow], serverTime: Int64, into secrets: inout SharedSecrets) {
            secrets.receive(rows, serverTime: serverTime, sentAt: 0, receivedAt: 0) {
                row throws(SecretError) in
                guard let secret = SecretBytes(count: 1, fill: { _ in true }) else {
                    throw .cryptoFailed
                }
                return secret
            }
        }
        receive(rows, serverTime: 1_100, into: &secrets)
        #expect(secrets.current(.signing, at: 0)?.row.name == "new")
        receive(rows, serverTime: 950, into: &secrets)
        #expect(secrets.current(.signing, at: 0)?.row.name == "new")
        // A node that starts then uses the oldest one.
        var fresh = SharedSecrets(kinds: [.signing], timing: Self.timing)
        receive(rows, serverTime: 100, into: &fresh)
        #expect(fresh.current(.signing, at: 0)?.row.name == "old")
        #expect(fresh.unreadiness(at: 0) == nil)
    }

    /// A rotation that waits for a lock in vain must not make the node unready.
    @Test func aRefusedRotationDoesNotKeepTheNodeFromReading() {
        var round = SecretRound(kinds: [.ticket], timing: Self.timing) {
            _ throws(SecretError) in .init(name: "a", wrapped: [])
        }
        _ = round.begin()
        guard case .send(let additions) = round.receive(.success(.secrets([], serverTime: 9))),
            additions.count == 1,
            case .send(let again) = round.receive(.failure(.lockTimeout)), again == [.read],
            case .end(let outcome) = round.receive(.success(.secrets([], serverTime: 10)))
        else {
            Issue.record("the table was not read again")
            return
        }
        #expect(outcome.serverTime == 10)
        var other = SecretRound(kinds: [.ticket], timing: Self.timing) {
            _ throws(SecretError) in .init(name: "a", wrapped: [])
        }
        _ = other.begin()
        guard case .fail = other.receive(.failure(.lockTimeout)) else {
            Issue.record("a reading that failed was taken for one")
            return
        }
    }
}
