import CurlMulti
import Foundation
import GatewayCore
import GatewaySigning
import GatewayTLS
import WidgetModel

/// The identity of an app at the push services of browsers.
package struct WebPushAccount: Sendable, Equatable {
    package let key: SigningKey
    package let subject: String
}

/// The service account of an app at Google, as the Firebase console issues it.
package struct FCMAccount: Sendable, Equatable {
    package let project: String
    package let email: String
    package let keyID: String
    package let key: ServiceAccountKey
    /// Where access tokens come from.
    package let tokens: WebhookEndpoint

    /// Reads the document. Returns the name of the first member that is missing or invalid.
    fileprivate static func read(_ document: [UInt8]) -> Result<FCMAccount, Unreadable> {
        let members = try? JSONValue(parsing: document).objectValue
        func text(_ name: String) -> String? { members?[name]?.stringValue }
        guard text("type") == "service_account" else {
            return .failure(Unreadable(member: "type"))
        }
        // It becomes part of a path.
        guard let project = text("project_id"), !project.isEmpty, !project.hasPrefix("."),
            project.utf8.allSatisfy({ $0.isLetterOrDigit || "-.:".utf8.contains($0) })
        else { return .failure(Unreadable(member: "project_id")) }
        guard let email = text("client_email") else {
            return .failure(Unreadable(member: "client_email"))
        }
        guard let keyID = text("private_key_id") else {
            return .failure(Unreadable(member: "private_key_id"))
        }
        guard let key = try? ServiceAccountKey(pem: Array((text("private_key") ?? "").utf8)) else {
            return .failure(Unreadable(member: "private_key"))
        }
        guard let tokens = try? WebhookEndpoint(text("token_uri") ?? "") else {
            return .failure(Unreadable(member: "token_uri"))
        }
        return .success(
            FCMAccount(project: project, email: email, keyID: keyID, key: key, tokens: tokens))
    }

    fileprivate struct Unreadable: Error {
        let member: String

        var message: String {
            member == "type"
                ? "is not a service account's key, which has the member type: service_account"
                : "has no valid `\(member)`"
        }
    }
}

/// The contents of the files and options in the push configuration, read and checked: keys,
/// certificates, authorities and address ranges.
package struct PushFiles: Sendable {
    /// The credential that authenticates pushes to APNs.
    package enum Credential: Sendable {
        /// A P-256 key.
        case key(SigningKey)
        /// A certificate chain and its key, both in PEM, and the expiry of the chain's first
        /// certificate.
        case certificate([UInt8], key: [UInt8], ends: Date)

        /// Distinguishes credentials whose files have the same names.
        package enum Proof: Hashable, Sendable {
            /// The thumbprint of a key.
            case key(String)
            /// The certificate chain, which determines the key.
            case certificate([UInt8])
        }

        /// The identity of its content.
        package var proof: Proof {
            switch self {
            case .key(let key): .key(key.kid)
            case .certificate(let chain, _, _): .certificate(chain)
            }
        }
    }

    /// The maximum size of a key file, in bytes; Apple's have 257.
    private static let keyBytesMax = 64 * 1_024

    package private(set) var credentials: [PushConfiguration.Credential: Credential] = [:]
    /// The expiry of the certificates that identify apps to APNs: for an app with several, the
    /// earliest.
    package private(set) var certificateEnds: [String: Date] = [:]
    /// The identities of apps with Web Push.
    package private(set) var webPush: [String: WebPushAccount] = [:]
    /// The service accounts of apps with pushes through FCM.
    package private(set) var fcm: [String: FCMAccount] = [:]
    /// The certificates to trust at APNs.
    package private(set) var trust = CurlTrust.system
    package private(set) var webhookTrust = CurlTrust.system
    /// The address ranges allowed for webhooks in addition to public addresses.
    package private(set) var webhookRanges: [AddressRange] = []
    /// The certificates to trust at browsers' push services and FCM.
    package private(set) var serviceTrust = CurlTrust.system
    /// The address ranges allowed for them in addition to public addresses.
    package private(set) var serviceRanges: [AddressRange] = []

    /// Reads all files. Throws ``Faults`` with every invalid option; they name files but never
    /// reveal their content.
    package init(_ configuration: PushConfiguration) throws(Faults) {
        var faults = Faults()
        for app in configuration.apps where credentials[app.credential] == nil {
            credentials[app.credential] = Self.read(
                app.credential, at: "apns.\(app.place)", &faults)
        }
        for app in configuration.apps {
            guard case .certificate(_, _, let ends) = credentials[app.credential] else { continue }
            certificateEnds[app.app] = min(ends, certificateEnds[app.app] ?? ends)
        }
        for app in configuration.webPush {
            let option = "webPush.\(app.place).key"
            guard let key = Self.key(app.key, option, &faults) else { continue }
            webPush[app.app] = WebPushAccount(key: key, subject: app.subject)
        }
        for app in configuration.fcm {
            let option = "fcm.\(app.place).serviceAccount"
            guard let document = Self.contents(app.file, option, &faults) else { continue }
            switch FCMAccount.read(document) {
            case .success(let account): fcm[app.app] = account
            case .failure(let fault):
                faults.add(option, "\(app.file) \(fault.message)")
            }
        }
        trust = Self.trust(configuration.trust, "push.apnsCA", &faults)
        webhookTrust = Self.trust(configuration.webhookTrust, "webhooks.ca", &faults)
        webhookRanges = Self.ranges(
            configuration.webhookRanges, "webhooks.allowedRanges", &faults)
        serviceTrust = Self.trust(configuration.serviceTrust, "push.serviceCA", &faults)
        serviceRanges = Self.ranges(configuration.serviceRanges, "push.serviceRanges", &faults)
        guard faults.isEmpty else { throw faults }
    }

    private static func ranges(
        _ texts: [String], _ option: String, _ faults: inout Faults
    ) -> [AddressRange] {
        var ranges: [AddressRange] = []
        for text in texts {
            if let range = AddressRange(text) {
                ranges.append(range)
            } else {
                faults.add(
                    option, "`\(text)` is not an address range such as 10.0.0.0/8 or fd00::/8")
            }
        }
        return ranges
    }

    private static func read(
        _ credential: PushConfiguration.Credential, at place: String, _ faults: inout Faults
    ) -> Credential? {
        switch credential {
        case .key(_, _, let file):
            return key(file, "\(place).key", &faults).map { .key($0) }
        case .certificate(let file, let key):
            // Both are read before an error returns, so that all faults are reported.
            let chain = contents(file, "\(place).certificate", &faults)
            let secret = contents(key, "\(place).certificateKey", &faults)
            guard let chain, let secret else { return nil }
            do throws(TLSError) {
                let context = try TLSContext(
                    certificateChain: .file(file), privateKey: .file(key))
                return .certificate(chain, key: secret, ends: context.notAfter)
            } catch {
                let isOfKey = error.code == .keyMismatch || error.message.hasPrefix(key)
                faults.add(
                    isOfKey ? "\(place).certificateKey" : "\(place).certificate", error.message)
                return nil
            }
        }
    }

    private static func key(
        _ file: String, _ option: String, _ faults: inout Faults
    ) -> SigningKey? {
        guard let pem = contents(file, option, &faults) else { return nil }
        guard let key = try? SigningKey(pem: pem), key.algorithm == .es256 else {
            faults.add(option, "\(file) contains no P-256 private key in PEM")
            return nil
        }
        return key
    }

    private static func trust(
        _ file: String?, _ option: String, _ faults: inout Faults
    ) -> CurlTrust {
        guard let file else { return .system }
        do throws(TLSError) {
            return .certificates(try PEMSource.file(file).certificateText())
        } catch {
            faults.add(option, error.message)
            return .system
        }
    }

    private static func contents(
        _ file: String, _ option: String, _ faults: inout Faults
    ) -> [UInt8]? {
        guard let data = FileManager.default.contents(atPath: file) else {
            faults.add(option, "\(file) cannot be read")
            return nil
        }
        guard data.count <= keyBytesMax else {
            faults.add(option, "\(file) is longer than \(keyBytesMax) bytes")
            return nil
        }
        return Array(data)
    }
}
