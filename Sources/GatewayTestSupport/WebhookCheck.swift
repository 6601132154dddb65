import Foundation

/// Verifies webhooks as Standard Webhooks 1.0 tells a receiver to, with code that shares nothing
/// with the signer: Python's standard library, and the `openssl` program for Ed25519.
package enum WebhookCheck {
    /// Returns the indices of a message's signatures that a public key (`whpk_…`) verifies.
    ///
    /// - Parameter age: The seconds that the message may be old; `nil` for any age.
    /// - Throws: ``TestFailure`` when a field is missing or does not have the specified format.
    package static func good(
        _ fields: [String: String], body: String, key: String, age: Int? = 300
    ) throws -> [Int] {
        let directory = try GatewayProcess.temporaryDirectory()
        let script = directory + "/verify.py"
        try Self.script.write(toFile: script, atomically: true, encoding: .utf8)
        try body.write(toFile: directory + "/body", atomically: true, encoding: .utf8)
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        let (exit, output) = try GatewayProcess.run(
            ["python3", script, directory, key, age.map(String.init) ?? ""]
                + names.map { fields[$0] ?? "" },
            program: "/usr/bin/env")
        guard exit == .status(0) else { throw TestFailure("not verified: \(output)") }
        return output.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
    }

    private static let script = """
        import base64, os, subprocess, sys, time
        directory, public, age, identifier, timestamp, signatures = sys.argv[1:]
        body = open(os.path.join(directory, "body"), "rb").read()
        assert identifier and "." not in identifier
        # A receiver takes no message that is older than a few minutes.
        assert not age or abs(time.time() - int(timestamp)) < int(age)
        assert public.startswith("whpk_")
        raw = base64.b64decode(public[len("whpk_"):], validate=True)
        assert len(raw) == 32

        def path(name, content):
            with open(os.path.join(directory, name), "wb") as file: file.write(content)
            return os.path.join(directory, name)

        # RFC 8410: what precedes a raw Ed25519 key in its SubjectPublicKeyInfo.
        key = path("key", bytes.fromhex("302a300506032b6570032100") + raw)
        content = path("content", f"{identifier}.{timestamp}.".encode() + body)
        for place, text in enumerate(signatures.split(" ")):
            version, signature = text.split(",", 1)
            assert version == "v1a"
            file = path("signature", base64.b64decode(signature, validate=True))
            done = subprocess.run(
                ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey",
                 key, "-sigfile", file, "-in", content], capture_output=True)
            if done.returncode == 0: print(place)
        """
}
