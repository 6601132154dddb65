import Foundation
import GatewaySigning
import Testing

@Suite struct KeyRingStoreTests {
    let directory: TemporaryDirectory
    let store: KeyRingStore
    let timing = KeyRing.Timing(publishLead: 300, signatureLifetime: 3_600)

    init() throws {
        directory = try TemporaryDirectory()
        store = KeyRingStore(directory: directory.path + "/keys")
    }

    func open(_ algorithm: SigningAlgorithm = .edDSA) throws -> KeyRing {
        try store.open(algorithm: algorithm, timing: timing, now: 1_000)
    }

    func fault(_ content: String) throws -> SigningError.Code? {
        try directory.write(content, to: "keys/ring.json")
        return signingFault { try store.open(timing: timing, now: 1_000) }?.code
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func theFirstStartMakesOneKeyAndTheNextFindsIt(_ algorithm: SigningAlgorithm) throws {
        let ring = try open(algorithm)
        #expect(ring.signingKey.algorithm == algorithm)
        #expect(
            try directory.names(in: "keys") == ["\(ring.signingKey.kid).pem", "ring.json"].sorted())
        #expect(try directory.mode("keys") == 0o700)
        for name in try directory.names(in: "keys") {
            #expect(try directory.mode("keys/\(name)") == 0o600)
        }
        #expect(try open() == ring)
    }

    /// A gateway advances its ring while people rotate it: no published key is lost, and no key
    /// that a ring names.
    @Test func manyMayChangeARingAtATime() async throws {
        let (store, timing) = (store, timing)
        let kids = try await withThrowingTaskGroup(of: Set<String>.self) { group in
            for number in 0..<(2 * (KeyRing.keysMax - 1)) {
                group.addTask {
                    var ring = try store.open(timing: timing, now: 1_000)
                    guard number.isMultiple(of: 2) else {
                        _ = try store.advance(&ring, now: 1_000)
                        return []
                    }
                    let before = Set(ring.publishedKeys.keys.map(\.kid))
                    // Each at another time: rotations at the same time count as one.
                    try store.rotate(&ring, to: .es256, now: 1_000 + 100 * Int64(number))
                    return Set(ring.publishedKeys.keys.map(\.kid)).subtracting(before)
                }
            }
            return try await group.reduce(into: Set()) { $0.formUnion($1) }
        }
        let ring = try open()
        #expect(ring.others.count == KeyRing.keysMax - 1)
        #expect(kids == Set(ring.others.map(\.key.kid)))
        #expect(try directory.names(in: "keys").count == KeyRing.keysMax + 1)
    }

    @Test func rotationsAtOneMomentAreOne() throws {
        var ring = try open()
        try store.rotate(&ring, now: 2_000)
        let once = ring
        for moment: Int64 in [2_000, 2_010, 1_990] {
            var other = try store.open(timing: timing, now: moment)
            try store.rotate(&other, now: moment)
            #expect(other == once)
        }
        // Another algorithm, or another time, is another rotation.
        try store.rotate(&ring, to: .es256, now: 2_000)
        #expect(ring.others.count == 2)
        try store.rotate(&ring, now: 2_011)
        #expect(ring.others.count == 3)
        try store.rotate(&ring, now: 1_900)
        #expect(ring.others.count == 4)
    }

    @Test func theFirstKeyOfARingIsNoRotation() throws {
        var ring = try open()
        try store.rotate(&ring, now: 1_000)
        #expect(ring.others.count == 1)
    }

    @Test func everyStateSurvivesARestart() throws {
        var ring = try open()
        try store.rotate(&ring, to: .es256, now: 2_000)
        #expect(try open() == ring)
        #expect(try store.advance(&ring, now: 2_100) == false)
        #expect(try store.advance(&ring, now: 2_300))
        #expect(ring.signingKey.algorithm == .es256)
        try store.rotate(&ring, now: 2_400)
        #expect(try open() == ring)
        #expect(ring.others.map(\.state) == [.retiring(until: 6_200), .published(from: 2_700)])
        #expect(try directory.names(in: "keys").count == 4)
        #expect(try store.advance(&ring, now: 10_000))
        #expect(try store.advance(&ring, now: 20_000))
        #expect(try open() == ring)
        #expect(
            try directory.names(in: "keys") == ["\(ring.signingKey.kid).pem", "ring.json"].sorted())
    }

    @Test func manyProcessesThatStartTogetherGetOneRing() async throws {
        let kids = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<8 {
                group.addTask { [store, timing] in
                    try store.open(timing: timing, now: 1_000).signingKey.kid
                }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(kids.count == 1)
        #expect(try directory.names(in: "keys").count == 2)
    }

    @Test func aRingThatIsExpectedIsNotMadeAnew() throws {
        #expect(signingFault { try store.openExisting(timing: timing) }?.code == .fileFailed)
        var ring = try open()
        #expect(try store.openExisting(timing: timing) == ring)
        try FileManager.default.removeItem(atPath: directory.path + "/keys/ring.json")
        #expect(signingFault { try store.openExisting(timing: timing) }?.code == .fileFailed)
        #expect(signingFault { try store.advance(&ring, now: 2_000) }?.code == .fileFailed)
        #expect(signingFault { try store.rotate(&ring, now: 2_000) }?.code == .fileFailed)
        #expect(try directory.names(in: "keys") == ["\(ring.signingKey.kid).pem"])
    }

    /// All earlier signatures still verify, and verifiers know the key that signs.
    @Test func keysThatLostTheirManifestAreTakenUpAgain() throws {
        var ring = try open()
        try store.rotate(&ring, to: .es256, now: 2_000)
        func age(_ key: SigningKey, _ time: TimeInterval) throws {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: time)],
                ofItemAtPath: "\(directory.path)/keys/\(key.kid).pem")
        }
        let (old, new) = (ring.signingKey, ring.others[0].key)
        try age(old, 1_000)
        try age(new, 2_000)
        try FileManager.default.removeItem(atPath: directory.path + "/keys/ring.json")
        let taken = try store.open(timing: timing, now: 3_000)
        #expect(taken.signingKey == old)
        #expect(taken.others.map(\.key) == [new])
        #expect(taken.others.map(\.state) == [.retiring(until: 6_900)])
        #expect(try store.openExisting(timing: timing) == taken)
        // A file that is not a key is an error.
        try FileManager.default.removeItem(atPath: directory.path + "/keys/ring.json")
        try directory.write("half", to: "keys/\(new.kid).pem")
        #expect(throws: SigningError.self) { try store.open(timing: timing, now: 3_000) }
    }

    @Test func filesLeftOverByACrashDoNoHarm() throws {
        let ring = try open()
        try directory.write("half", to: "keys/ring.json.abc.tmp")
        try SigningKey().save(to: directory.path + "/keys/orphan.pem")
        #expect(try open() == ring)
    }

    @Test func aDamagedRingIsRefusedAndLeftAsItIs() throws {
        let ring = try open()
        let kid = ring.signingKey.kid
        func entry(_ state: String, kid: String) -> String {
            #"{"kid":"\#(kid)","state":"\#(state)","time":1}"#
        }
        for content in [
            "", "{}", #"{"keys":[]}"#, #"{"keys":[{}]}"#,
            #"{"keys":[\#(entry("retiring", kid: kid))]}"#,
            #"{"keys":[\#(entry("lost", kid: kid))]}"#,
            #"{"keys":[\#(entry("signing", kid: "../../etc/key"))]}"#,
            #"{"keys":[\#(entry("signing", kid: kid)),\#(entry("retiring", kid: kid))]}"#,
            #"{"keys":[{"kid":"\#(kid)","state":"signing","time":"1"}]}"#,
        ] {
            #expect(try fault(content) == .documentMalformed)
        }
        let absent = try SigningKey()
        let two = entry("signing", kid: kid) + "," + entry("signing", kid: absent.kid)
        #expect(try fault(#"{"keys":[\#(two)]}"#) == .documentMalformed)
        #expect(try fault(#"{"keys":[\#(entry("signing", kid: absent.kid))]}"#) == .fileFailed)
        try absent.save(to: "\(directory.path)/keys/\(kid).pem")
        #expect(try fault(#"{"keys":[\#(entry("signing", kid: kid))]}"#) == .documentMalformed)
        #expect(try directory.names(in: "keys").count == 2)
    }

    @Test func aDirectoryThatCannotBeMadeIsAnError() {
        let lost = KeyRingStore(directory: directory.path + "/no/such/keys")
        #expect(signingFault { try lost.open(timing: timing, now: 0) }?.code == .fileFailed)
    }

    @Test func aRotationThatCannotBeWrittenLeavesTheRingAlone() throws {
        var ring = try open()
        let before = ring
        try FileManager.default.removeItem(atPath: directory.path + "/keys")
        #expect(throws: SigningError.self) { try store.rotate(&ring, now: 2_000) }
        #expect(ring == before)
    }
}
