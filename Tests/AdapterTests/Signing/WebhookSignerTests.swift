import Foundation
import GatewaySigning
import GatewayTestSupport
import Testing

/// Signatures of Standard Webhooks, verified with code that shares nothing with ours.
@Suite struct WebhookSignerTests {
    static let hasTools =
        Tool.hasOpenSSL && (try? Tool.run(["python3", "-c", "import base64"]).status) == 0

    @Test(.enabled(if: hasTools, needsOpenSSL))
    func `others verify each signature of a rotation by its own key`() throws {
        let keys = [try SigningKey(), try SigningKey()]
        let signer = try WebhookSigner(keys)
        let body = #"{"cursor":"ü","notifications":["a.b.c"]}"#
        let fields = try signer.fields(id: "msg_7", timestamp: 1_800_000_000, body: bytes(body))
        #expect(fields.map(\.name) == ["webhook-id", "webhook-timestamp", "webhook-signature"])
        #expect(fields[0].value == "msg_7" && fields[1].value == "1800000000")
        func good(
            _ key: String, _ id: String, _ time: String, _ body: String
        ) throws -> [Int] {
            let named = ["webhook-id", "webhook-timestamp", "webhook-signature"]
            let sent = zip(named, [id, time, fields[2].value])
            return try WebhookCheck.good(
                Dictionary(uniqueKeysWithValues: sent), body: body, key: key, age: nil)
        }
        for (number, key) in signer.publicKeys.enumerated() {
            #expect(try good(key, "msg_7", "1800000000", body) == [number])
            #expect(try good(key, "msg_8", "1800000000", body) == [])
            #expect(try good(key, "msg_7", "1800000001", body) == [])
            #expect(try good(key, "msg_7", "1800000000", body + " ") == [])
        }
        let stranger = try WebhookSigner([SigningKey()]).publicKeys[0]
        #expect(try good(stranger, "msg_7", "1800000000", body) == [])
    }

    @Test func `the signature of a known key is the known one`() throws {
        // The key of RFC 8032 section 7.1, test 1; the signed content is ours.
        let seed = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
        let info =
            [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20] as [UInt8]
        let der = Data(info) + (try #require(Data(base64Encoded: seed)))
        let pem =
            "-----BEGIN PRIVATE KEY-----\n\(der.base64EncodedString())\n-----END PRIVATE KEY-----\n"
        let key = try SigningKey(pem: bytes(pem))
        let signer = try WebhookSigner([key])
        #expect(signer.publicKeys == ["whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="])
        let value = try signer.fields(id: "a", timestamp: 1, body: bytes("{}"))[2].value
        let signature = try #require(Data(base64Encoded: String(value.dropFirst(4))))
        #expect(value.hasPrefix("v1a,") && signature.count == 64)
        #expect(key.publicKey.verify(Array(signature), over: bytes("a.1.{}")))
    }

    @Test(arguments: ["", "a.b", "a b", "ä", "a\n", String(repeating: "a", count: 257)])
    func `an id that could be misread is refused`(id: String) throws {
        let signer = try WebhookSigner([SigningKey()])
        let fault = signingFault { try signer.fields(id: id, timestamp: 1, body: []) }
        #expect(fault?.code == .documentMalformed)
    }

    @Test func `one Ed25519 key signs, or two`() throws {
        let key = try SigningKey()
        for keys in [[], [key, key, key]] {
            #expect(signingFault { try WebhookSigner(keys) }?.code == .limitExceeded)
        }
        let fault = signingFault { try WebhookSigner([key, SigningKey(generating: .es256)]) }
        #expect(fault?.code == .keyUnsupported)
    }
}
