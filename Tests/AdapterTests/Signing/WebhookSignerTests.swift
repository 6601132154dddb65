import Foundation
import GatewaySigning
import Testing

/// Signatures of Standard Webhooks, verified with code that shares nothing with ours: the openssl
/// command for the signature, and Python's standard library for everything else.
@Suite struct WebhookSignerTests {
    /// Verifies as the specification tells a receiver to, given the text of a public key, three
    /// header fields and a body; prints which of the signatures is valid.
    static let verifier = """
        import base64, subprocess, sys, tempfile, os
        directory, public, identifier, timestamp, signatures = sys.argv[1:6]
        body = sys.stdin.buffer.read()
        assert public.startswith("whpk_")
        raw = base64.b64decode(public[len("whpk_"):], validate=True)
        assert len(raw) == 32
        def path(name, content):
            with open(os.path.join(directory, name), "wb") as file: file.write(content)
            return os.path.join(directory, name)
        # RFC 8410: what precedes a raw Ed25519 key in its SubjectPublicKeyInfo.
        key = path("key.der", bytes.fromhex("302a300506032b6570032100") + raw)
        content = path("content", identifier.encode() + b"." + timestamp.encode() + b"." + body)
        good = []
        for number, signature in enumerate(signatures.split(" ")):
            version, text = signature.split(",", 1)
            assert version == "v1a"
            file = path("signature", base64.b64decode(text, validate=True))
            done = subprocess.run(["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform",
                "DER", "-inkey", key, "-sigfile", file, "-in", content], capture_output=True)
            if done.returncode == 0: good.append(number)
        print(good)
        """

    static let hasTools =
        Tool.hasOpenSSL && (try? Tool.run(["python3", "-c", "import base64"]).status) == 0

    @Test(.enabled(if: hasTools, needsOpenSSL))
    func `others verify each signature of a rotation by its own key`() throws {
        let directory = try TemporaryDirectory()
        let keys = [try SigningKey(), try SigningKey()]
        let signer = try WebhookSigner(keys)
        let body = #"{"cursor":"ü","notifications":["a.b.c"]}"#
        let fields = try signer.fields(id: "msg_7", timestamp: 1_800_000_000, body: bytes(body))
        #expect(fields.map(\.name) == ["webhook-id", "webhook-timestamp", "webhook-signature"])
        #expect(fields[0].value == "msg_7" && fields[1].value == "1800000000")
        func good(_ key: String, _ id: String, _ time: String, _ body: String) throws -> String {
            let result = try Tool.run(
                [
                    "python3", "-c", Self.verifier, directory.path, key, id, time, fields[2].value,
                ], input: body)
            #expect(result.status == 0)
            return result.output
        }
        for (number, key) in signer.publicKeys.enumerated() {
            #expect(try good(key, "msg_7", "1800000000", body) == "[\(number)]")
            #expect(try good(key, "msg_8", "1800000000", body) == "[]")
            #expect(try good(key, "msg_7", "1800000001", body) == "[]")
            #expect(try good(key, "msg_7", "1800000000", body + " ") == "[]")
        }
        let stranger = try WebhookSigner([SigningKey()]).publicKeys[0]
        #expect(try good(stranger, "msg_7", "1800000000", body) == "[]")
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
        #expect { try signer.fields(id: id, timestamp: 1, body: []) } throws: {
            ($0 as? SigningError)?.code == .documentMalformed
        }
    }

    @Test func `one Ed25519 key signs, or two`() throws {
        let key = try SigningKey()
        for keys in [[], [key, key, key]] {
            #expect { try WebhookSigner(keys) } throws: {
                ($0 as? SigningError)?.code == .limitExceeded
            }
        }
        #expect { try WebhookSigner([key, SigningKey(generating: .es256)]) } throws: {
            ($0 as? SigningError)?.code == .keyUnsupported
        }
    }
}
