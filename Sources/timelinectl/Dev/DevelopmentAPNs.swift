import APNsSimulator
import ArgumentParser
import Foundation
import GatewaySigning
import GatewayTLS

/// The files of a simulated push service in a directory: its certificates, and the key of a team.
struct DevelopmentAPNs: ParsableArguments {
    @Option(help: ArgumentHelp("Directory for certificates and keys.", valueName: "directory"))
    var data = ".timeline-apns"

    @Option(
        name: .customLong("provider-key"),
        help: ArgumentHelp("The team's key, such as AuthKey_ABC.p8.", valueName: "file"))
    var providerKey: String?

    @Option(name: .customLong("key-id"), help: ArgumentHelp("The key's id.", valueName: "id"))
    var keyID = "DEVAPNSKEY"

    @Option(help: ArgumentHelp("The team's id.", valueName: "id"))
    var team = "DEVAPNTEAM"

    var keyPath: String { providerKey ?? "\(data)/AuthKey_\(keyID).p8" }

    func validate() throws {
        for (name, value) in [("--key-id", keyID), ("--team", team)] {
            let isID =
                !value.isEmpty && value.utf8.count <= 64
                && value.utf8.allSatisfy(\.isASCIIAlphanumeric)
            guard isID else { throw ValidationError("\(name) must be letters and digits") }
        }
    }

    /// Certificates for this machine's own names; creates them if they are missing.
    func certificates() throws -> DevelopmentCertificates {
        try DevelopmentFiles.certificates(in: data)
    }

    /// The team's key; creates one if it is missing.
    func key() throws -> SigningKey {
        try DevelopmentFiles.key(keyPath, creatingIn: providerKey == nil ? data : nil)
    }

    /// The key in the form in which the service registers it.
    func registered(_ key: SigningKey) throws -> ProviderKey {
        do throws(SigningError) {
            return try ProviderKey(id: keyID, team: team, key: key.publicKey)
        } catch {
            throw ValidationError("\(keyPath): \(error.message)")
        }
    }
}

/// The files of a simulated push service; created if they are missing.
enum DevelopmentFiles {
    static func certificates(in folder: String) throws -> DevelopmentCertificates {
        do throws(TLSError) {
            return try DevelopmentCertificates.ensure(
                in: folder, now: Int64(Date().timeIntervalSince1970))
        } catch {
            throw ValidationError(error.message)
        }
    }

    /// - Parameter folder: The directory of the key to create; `nil` to create none.
    static func key(_ path: String, creatingIn folder: String?) throws -> SigningKey {
        do throws(SigningError) {
            if let folder, !FileManager.default.fileExists(atPath: path) {
                // If this fails, so does saving, with the reason.
                try? FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: true,
                    attributes: [.posixPermissions: 0o700])
                try SigningKey(generating: .es256).save(to: path)
            }
            return try SigningKey(contentsOf: path)
        } catch {
            throw ValidationError("\(path): \(error.message)")
        }
    }
}

struct APNsTokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apns-token",
        abstract: "Print a provider token that `dev apns` accepts.",
        discussion: """
            A token is valid for an hour. Apple accepts at most one new token in 20 minutes on a \
            connection.

            Example:
              TOKEN=$(timelinectl dev apns-token)
              curl --http2 --cacert .timeline-apns/certs/ca.pem \\
                -H "authorization: bearer $TOKEN" -H 'apns-push-type: widgets' \\
                -H 'apns-topic: com.mygame.push-type.widgets' \\
                -d '{"aps":{"content-changed":true}}' https://127.0.0.1:2197/3/device/0a0b0c
            """)

    @OptionGroup var development: DevelopmentAPNs

    func run() throws {
        let key = try development.key()
        do throws(SigningError) {
            Terminal.print(
                try key.providerToken(
                    keyID: development.keyID, team: development.team,
                    issuedAt: Int64(Date().timeIntervalSince1970)))
        } catch {
            throw ValidationError("\(development.keyPath): \(error.message)")
        }
    }
}
