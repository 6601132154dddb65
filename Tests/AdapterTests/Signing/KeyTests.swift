import COpenSSL
import Foundation
import GatewaySigning
import Testing
import WidgetModel

@Suite struct KeyTests {
    @Test(arguments: SigningAlgorithm.allCases)
    func aKeySurvivesItsFile(_ algorithm: SigningAlgorithm) throws {
        let directory = try TemporaryDirectory()
        let key = try SigningKey(generating: algorithm)
        let path = "\(directory.path)/key.pem"
        try key.save(to: path)
        try key.save(to: path)
        #expect(try directory.names() == ["key.pem"])
        #expect(try directory.mode("key.pem") == 0o600)
        let loaded = try SigningKey(contentsOf: path)
        #expect(loaded == key)
        let message = bytes("one message")
        let signature = try loaded.sign(message)
        #expect(signature.count == 64)
        #expect(key.publicKey.verify(signature, over: message))
        let published = try VerificationKey(pem: try key.publicKey.pem())
        #expect(published == key.publicKey)
        #expect(published.verify(signature, over: message))
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func aFileOfTheWorldIsReplacedByOneOfItsOwner(_ algorithm: SigningAlgorithm) throws {
        let directory = try TemporaryDirectory()
        try directory.write("old", to: "key.pem")
        try SigningKey(generating: algorithm).save(to: "\(directory.path)/key.pem")
        #expect(try directory.mode("key.pem") == 0o600)
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func thePublicJWKHoldsNoSecret(_ algorithm: SigningAlgorithm) throws {
        let key = try SigningKey(generating: algorithm)
        let names = key.publicJWK.members.map(\.name)
        let coordinates = algorithm == .es256 ? ["x", "y"] : ["x"]
        #expect(names == ["kty", "crv"] + coordinates + ["alg", "use", "kid"])
        #expect(try VerificationKey(jwk: key.publicJWK) == key.publicKey)
        #expect(key.kid.utf8.count == 43)
        let dumped = String(reflecting: key) + String(describing: [key])
        #expect(!dumped.contains("PRIVATE"))
        #expect(dumped.contains(key.kid))
    }

    /// ECDSA is randomised: in one signature of 128, DER encodes r or s in fewer bytes.
    @Test func everyP256SignatureHas64BytesAndVerifies() throws {
        let key = try SigningKey(generating: .es256)
        for round in 0..<500 {
            let message = bytes("message \(round)")
            let signature = try key.sign(message)
            #expect(signature.count == 64)
            #expect(key.publicKey.verify(signature, over: message))
        }
    }

    @Test func bothSpellingsOfAnECDSASignatureAgreeForAllLeadingBytes() throws {
        for zeros in 0...31 {
            for top in [UInt8(0x01), 0x7F, 0x80, 0xFF] {
                var number = [UInt8](repeating: 0x5A, count: 32)
                for index in 0..<zeros { number[index] = 0 }
                number[zeros] = top
                let one = [UInt8](repeating: 0, count: 31) + [1]
                for fixed in [number + one, one + number] {
                    let der = try #require(ECDSASignature.der(fixedWidth: fixed))
                    #expect(ECDSASignature.fixedWidth(der: der) == fixed)
                }
            }
        }
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func noBitOfASignatureOrMessageMayChange(_ algorithm: SigningAlgorithm) throws {
        let key = try SigningKey(generating: algorithm)
        let message = bytes("pay attention")
        let signature = try key.sign(message)
        for index in signature.indices {
            var changed = signature
            changed[index] ^= 1 << UInt8(index % 8)
            #expect(!key.publicKey.verify(changed, over: message))
        }
        for index in message.indices {
            var changed = message
            changed[index] ^= 0x20
            #expect(!key.publicKey.verify(signature, over: changed))
        }
        let zeros = [UInt8](repeating: 0, count: 64)
        for wrong in [[], zeros, Array(signature.dropLast()), signature + [0], Array(message)] {
            #expect(!key.publicKey.verify(wrong, over: message))
        }
        #expect(try !SigningKey(generating: algorithm).publicKey.verify(signature, over: message))
    }

    @Test func whatIsNoKeyIsRefused() throws {
        for pem in [
            "", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            text(try SigningKey().publicKey.pem()), String(repeating: "A", count: 20_000),
        ] {
            #expect(signingFault { try SigningKey(pem: bytes(pem)) }?.code == .keyUnsupported)
        }
        let missing = signingFault { try SigningKey(contentsOf: "/nowhere/key.pem") }
        #expect(missing?.code == .fileFailed)
    }

    /// TLS on the same thread reads the same queue and would take our failure for its own.
    @Test func aFailureLeavesNothingInTheErrorQueueOfTheThread() throws {
        ERR_clear_error()
        let key = try SigningKey(generating: .es256)
        _ = try? SigningKey(pem: bytes("-----BEGIN PRIVATE KEY-----\nAAAA\n"))
        #expect(ERR_peek_error() == 0)
        _ = key.publicKey.verify([UInt8](repeating: 0, count: 64), over: [1])
        #expect(ERR_peek_error() == 0)
        var offCurve = RFCVectorTests.p256JWK
        offCurve["y"] = offCurve["x"]
        #expect(throws: SigningError.self) { try VerificationKey(jwk: offCurve) }
        #expect(ERR_peek_error() == 0)
    }

    @Test func randomBytesDiffer() throws {
        let one = try secureRandom(count: 32)
        let other = try secureRandom(count: 32)
        #expect(one != other)
        #expect(try secureRandom(count: 0) == [])
    }

    @Test func manyTasksSignWithOneKeyAtATime() async throws {
        for algorithm in SigningAlgorithm.allCases {
            let key = try SigningKey(generating: algorithm)
            let signer = JWSSigner.reloads(key)
            let keys = JWKSet([key.publicKey])
            try await withThrowingTaskGroup(of: Int.self) { group in
                for task in 0..<8 {
                    group.addTask {
                        var count = 0
                        for round in 0..<100 {
                            let payload = bytes("task \(task) round \(round)")
                            let jws = try JWS(
                                parsing: try signer.sign(payload: payload),
                                bytesMax: JWS.notificationBytesMax)
                            if try jws.verifiedPayload(by: keys, as: .reload) == payload {
                                count += 1
                            }
                        }
                        return count
                    }
                }
                var total = 0
                for try await count in group { total += count }
                #expect(total == 800)
            }
        }
    }
}
