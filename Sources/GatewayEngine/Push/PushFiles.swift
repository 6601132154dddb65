import Foundation
import GatewayCore
import GatewayPush
import GatewaySigning
import GatewayTLS
import WidgetModel

/// What the configuration of pushes names, read and checked: keys, certificates, authorities and
/// ranges of addresses.
package struct PushFiles: Sendable {
    /// What pushes to APNs are authenticated with.
    enum Credential: Sendable {
        /// A P-256 key.
        case key(SigningKey)
        /// A certificate chain and the key that belongs to it, both in PEM, and when the first
        /// certificate of the chain expires.
        case certificate([UInt8], key: [UInt8], ends: Date)

        /// Tells credentials apart whose files have the same names.
        enum Proof: Hashable {
            /// The thumbprint of a key.
            case key(String)
            /// The certificate chain; its key belongs to it.
            case certificate([UInt8])
        }

        /// What tells it from another one.
        var proof: Proof {
            switch self {
            case .key(let key): .key(key.kid)
            case .certificate(let chain, _, _): .certificate(chain)
            }
        }
    }

    /// The longest file of a key; Apple's have 257 bytes.
    private static let keyBytesMax = 64 * 1_024

    /// By what the configuration says of them.
    private(set) var credentials: [PushConfiguration.Credential: Credential] = [:]
    /// When the certificates expire by which APNs knows apps: of an app with several, the first one.
    package private(set) var certificateEnds: [String: Date] = [:]
    /// What webhooks may have beside public addresses.
    private(set) var webhookRanges: [AddressRange] = []

    /// Reads everything.
    ///
    /// - Throws: ``Faults`` with every option that is wrong. They name files, and never say what is
    ///   in them.
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
        for (option, file) in [
            ("push.apnsCA", configuration.trust), ("webhooks.ca", configuration.webhookTrust),
        ] {
            guard let file else { continue }
            do throws(TLSError) {
                try PEMSource.file(file).checkCertificates()
            } catch {
                faults.add(option, error.message)
            }
        }
        for text in configuration.webhookRanges {
            if let range = AddressRange(text) {
                webhookRanges.append(range)
            } else {
                faults.add(
                    "webhooks.allowedRanges",
                    "`\(text)` is no range of addresses such as 10.0.0.0/8 or fd00::/8")
            }
        }
        guard faults.isEmpty else { throw faults }
    }

    private static func read(
        _ credential: PushConfiguration.Credential, at place: String, _ faults: inout Faults
    ) -> Credential? {
        switch credential {
        case .key(_, _, let file):
            guard let pem = contents(file, "\(place).key", &faults) else { return nil }
            guard let key = try? SigningKey(pem: pem), key.algorithm == .es256 else {
                faults.add("\(place).key", "\(file) holds no P-256 private key in PEM")
                return nil
            }
            return .key(key)
        case .certificate(let file, let key):
            // Both are looked at before either is given up.
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
