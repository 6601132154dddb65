import Foundation
import GatewaySigning
import Testing
import WidgetModel

/// The same keys and signatures with other software: the openssl command and Python.
@Suite struct InteroperabilityTests {
    @Test(.enabled(if: Tool.hasOpenSSL, needsOpenSSL), arguments: SigningAlgorithm.allCases)
    func opensslVerifiesWhatWeSign(_ algorithm: SigningAlgorithm) throws {
        let directory = try TemporaryDirectory()
        let key = try SigningKey(generating: algorithm)
        try directory.write(text(try key.publicKey.pem()), to: "public.pem")
        try directory.write("a message", to: "message")
        var signature = try key.sign(bytes("a message"))
        if algorithm == .es256 {
            signature = try #require(ECDSASignature.der(fixedWidth: signature))
        }
        try Data(signature).write(to: URL(filePath: directory.path + "/signature"))
        let verify =
            [
                "openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey",
                directory.path + "/public.pem", "-sigfile", directory.path + "/signature", "-in",
                directory.path + "/message",
            ] + (algorithm == .es256 ? ["-digest", "sha256"] : [])
        #expect(try Tool.run(verify).status == 0)
        try directory.write("another message", to: "message")
        #expect(try Tool.run(verify).status != 0)
    }

    @Test(.enabled(if: Tool.hasOpenSSL, needsOpenSSL), arguments: SigningAlgorithm.allCases)
    func weVerifyWhatOpensslSignsWithItsOwnKey(_ algorithm: SigningAlgorithm) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/key.pem"
        let kind =
            algorithm == .edDSA
            ? ["-algorithm", "ed25519"]
            : ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
        #expect(try Tool.run(["openssl", "genpkey", "-out", path] + kind).status == 0)
        try directory.write("a message", to: "message")
        let sign =
            [
                "openssl", "pkeyutl", "-sign", "-rawin", "-inkey", path, "-in",
                directory.path + "/message", "-out", directory.path + "/signature",
            ] + (algorithm == .es256 ? ["-digest", "sha256"] : [])
        #expect(try Tool.run(sign).status == 0)
        let made = Array(try Data(contentsOf: URL(filePath: directory.path + "/signature")))
        let signature = try #require(
            algorithm == .es256 ? ECDSASignature.fixedWidth(der: made) : made)
        let key = try SigningKey(contentsOf: path)
        #expect(key.algorithm == algorithm)
        #expect(key.publicKey.verify(signature, over: bytes("a message")))
        #expect(
            try text(key.publicKey.pem()).trimmingCharacters(in: .newlines)
                == Tool.run(["openssl", "pkey", "-in", path, "-pubout"]).output)
        #expect(
            try text(key.pem()).trimmingCharacters(in: .newlines)
                == String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines))
    }

    @Test(
        .enabled(if: Tool.hasOpenSSL, needsOpenSSL),
        arguments: [
            ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
            [
                "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt",
                "ec_param_enc:explicit",
            ],
            ["-algorithm", "ed448"], ["-algorithm", "x25519"],
            // Tokens may be verified with RSA, but nothing is signed with it.
            ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            ["-algorithm", "ed25519", "-aes256", "-pass", "pass:secret"],
        ])
    func keysOfOtherKindsAreRefused(_ kind: [String]) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/key.pem"
        #expect(try Tool.run(["openssl", "genpkey", "-out", path] + kind).status == 0)
        #expect(signingFault { try SigningKey(contentsOf: path) }?.code == .keyUnsupported)
    }

    @Test(.enabled(if: Tool.hasJOSE, needsJOSE), arguments: SigningAlgorithm.allCases)
    func aJOSELibraryVerifiesOurMessagesByOurPublishedSet(
        _ algorithm: SigningAlgorithm
    ) throws {
        let key = try SigningKey(generating: algorithm)
        let set = JWKSet([try SigningKey().publicKey, key.publicKey])
        let script = """
            import json, sys, warnings
            warnings.simplefilter("ignore")
            from joserfc import jws
            from joserfc.jwk import KeySet
            given = json.load(sys.stdin)
            keys = KeySet.import_key_set(given["set"])
            message = jws.deserialize_compact(given["jws"], keys, algorithms=["EdDSA", "ES256"])
            assert message.headers()["typ"] == "timeline-reload+jwt"
            names = [key.thumbprint() for key in keys.keys]
            assert names == [key.kid for key in keys.keys], names
            print(message.payload.decode())
            """
        let compact = try JWSSigner.reloads(key).sign(payload: bytes(#"{"seq":1,"ü":"ä"}"#))
        var given: JSONObject = ["set": set.json, "jws": .string(text(compact))]
        let good = try Tool.run(
            ["python3", "-c", script], input: JSONValue.object(given).text)
        #expect(good.status == 0)
        #expect(good.output == #"{"seq":1,"ü":"ä"}"#)
        var changed = compact
        changed[changed.count - 10] ^= 1
        given["jws"] = .string(text(changed))
        #expect(
            try Tool.run(["python3", "-c", script], input: JSONValue.object(given).text).status != 0
        )
    }

    @Test(
        .enabled(if: Tool.hasJOSE, needsJOSE),
        arguments: VerificationAlgorithm.allCases.map(\.rawValue) + ["Ed25519"])
    func weBelieveATokenThatAJOSELibrarySigned(_ algorithm: String) throws {
        let script = """
            import json, sys, warnings
            warnings.simplefilter("ignore")
            from joserfc import jwt
            from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey
            alg = sys.argv[1]
            kinds = {"E": (OKPKey, "Ed25519"), "ES256": (ECKey, "P-256"), "R": (RSAKey, 2048)}
            kind, size = kinds["ES256" if alg == "ES256" else "R" if "S" in alg[:2] else "E"]
            made = kind.generate_key(size)
            key = type(made).import_key({**made.as_dict(private=True), "kid": "partner-1"})
            claims = {"iss": "partner", "sub": "phone", "aud": ["https://gateway.example"],
                      "app": "game", "scope": "client", "iat": 1800000000, "exp": 1800003600,
                      "attributes": {"account": 42}}
            header = {"alg": alg, "kid": "partner-1"}
            token = jwt.encode(header, claims, key, algorithms=[alg])
            print(json.dumps({"token": token, "set": KeySet([key]).as_dict(private=False)}))
            """
        let made = try Tool.run(["python3", "-c", script, algorithm])
        let object = try #require(JSONValue(parsing: made.output).objectValue)
        let set = try JWKSet(try #require(object["set"]))
        #expect(set.skipped == [])
        let verifier = TokenVerifier(
            policy: TokenPolicy(
                issuers: [
                    TrustedIssuer(
                        iss: "partner", apps: .only(["game"]), scopes: [.client], keys: set)
                ], audiences: ["https://gateway.example"]))
        let token = try #require(object["token"]?.stringValue)
        let verified = try verifier.verify(bytes(token), now: 1_800_000_000)
        #expect(verified.kid == "partner-1")
        #expect(verified.attributes == ["account": ["42"]])
    }
}
