import Foundation
import GatewayTestSupport
import WidgetModel

/// Verifies signatures with code that shares nothing with the signer: Python's `cryptography`, or
/// the `openssl` program on a sample if Python has none.
enum SignatureCheck {
    /// Verifies compact JWS against a JWK set.
    ///
    /// - Returns: The script's output: the number verified, and the total.
    /// - Throws: ``TestFailure`` when one does not verify, or its content is wrong.
    static func verify(
        _ notifications: some Collection<String>, keys: String, app: String
    ) throws -> String {
        let directory = try GatewayProcess.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func write(_ text: String, to name: String) throws -> String {
            let path = directory + "/" + name
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            return path
        }
        let arguments = [
            "python3", try write(script, to: "verify.py"), try write(keys, to: "keys.json"),
            try write(notifications.joined(separator: "\n"), to: "notifications"), app,
        ]
        let (exit, output) = try GatewayProcess.run(
            arguments, program: "/usr/bin/env", seconds: 300)
        guard exit == .status(0) else { throw TestFailure("not verified: \(output)") }
        return output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static let script = #"""
        import base64, json, subprocess, sys, tempfile, time

        def decode(text):
            return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

        keys = {key["kid"]: key for key in json.load(open(sys.argv[1]))["keys"]}
        lines = open(sys.argv[2]).read().split("\n")
        app = sys.argv[3]

        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
            step = 1
            public = {kid: Ed25519PublicKey.from_public_bytes(decode(key["x"]))
                      for kid, key in keys.items()}

            def verify(kid, signature, signed):
                public[kid].verify(signature, signed)
        except ImportError:
            step = 100
            folder = tempfile.mkdtemp()
            prefix = bytes.fromhex("302a300506032b6570032100")

            def verify(kid, signature, signed):
                for name, content in (("key", prefix + decode(keys[kid]["x"])),
                                      ("signature", signature), ("signed", signed)):
                    open(folder + "/" + name, "wb").write(content)
                subprocess.run(
                    ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER",
                     "-inkey", folder + "/key", "-in", folder + "/signed",
                     "-sigfile", folder + "/signature"],
                    check=True, stdout=subprocess.DEVNULL)

        now = time.time()
        identifiers = set()
        for line in lines[::step]:
            head, body, signature = line.split(".")
            header, claims = json.loads(decode(head)), json.loads(decode(body))
            assert header["typ"] == "timeline-reload+jwt", header
            key = keys[header["kid"]]
            assert header["alg"] == key["alg"] == "EdDSA" and key["crv"] == "Ed25519", header
            assert claims["aud"] == app and claims["iat"] <= now + 1 < claims["exp"], claims
            assert claims["jti"] not in identifiers, claims
            identifiers.add(claims["jti"])
            verify(header["kid"], decode(signature), (head + "." + body).encode())
        print(len(identifiers), "of", len(lines), "signatures verified")
        """#
}
