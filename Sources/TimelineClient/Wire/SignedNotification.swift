import Foundation
import WidgetModel

/// A notification in the compact form (RFC 7515 section 7.1), taken apart but not yet believed.
public struct SignedNotification: Sendable {
    /// Longest one that is read, bytes.
    public static let bytesMax = 16 * 1024
    /// Longest name of a key, bytes.
    static let keyIDBytesMax = 256

    /// `alg` as its sender claims; only ever compared with the key's own.
    public let algorithm: String
    /// `kid`: the name of the key that is said to have signed.
    public let keyID: String
    /// What the signature is over.
    public let signingInput: [UInt8]
    /// The signature: for both algorithms, Ed25519 and ES256, 64 bytes when it is one.
    public let signature: [UInt8]
    /// The claims in JSON, as they are said to be signed.
    let payload: [UInt8]

    /// Takes a notification apart.
    ///
    /// - Throws: ``VerificationFailure`` (`malformed`) when it is longer than ``bytesMax``, is not of
    ///   this form, demands something by `crit`, or is a token of another type.
    init(_ text: String) throws(VerificationFailure) {
        guard text.utf8.count <= Self.bytesMax else {
            throw VerificationFailure(.malformed, "it is longer than \(Self.bytesMax) bytes")
        }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let headerText = Self.decoded(parts[0]),
            let payload = Self.decoded(parts[1]), let signature = Self.decoded(parts[2]),
            // A duplicate member is a fault already, so what is read is all there is.
            let header = try? JSONValue(parsing: headerText).objectValue,
            let algorithm = header["alg"]?.stringValue, let keyID = header["kid"]?.stringValue,
            keyID.utf8.count <= Self.keyIDBytesMax
        else {
            throw VerificationFailure(.malformed, "it is not a signed JWT in the compact form")
        }
        guard header["crit"] == nil else {
            throw VerificationFailure(
                .malformed, "its header has crit, of which nothing is supported")
        }
        let type = header["typ"]?.stringValue?.lowercased() ?? ""
        guard [ReloadNotification.typ, "application/\(ReloadNotification.typ)"].contains(type)
        else {
            throw VerificationFailure(.malformed, "its typ is not \(ReloadNotification.typ)")
        }
        self.algorithm = algorithm
        self.keyID = keyID
        self.payload = payload
        self.signature = signature
        signingInput = Array(text.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
    }

    /// The bytes of base64url without padding (RFC 4648 section 5); `nil` for anything else.
    static func decoded(_ text: Substring) -> [UInt8]? {
        guard text.utf8.allSatisfy(isLetter) else { return nil }
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        let padded =
            String(text).replacing("-", with: "+").replacing("_", with: "/") + padding
        return Data(base64Encoded: padded).map { [UInt8]($0) }
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// A gateway's public keys, in a library that checks signatures: OpenSSL in `TimelineClientHTTP`,
/// CryptoKit on Apple's systems.
public protocol VerificationKeys: Sendable {
    /// Reads a JWK Set (RFC 7517). Keys of other kinds than Ed25519 and P-256, and malformed ones,
    /// are left out; `nil` when it is no set.
    init?(jwks: [UInt8])

    /// Whether the key that a notification names signed it, with that key's own algorithm: what the
    /// notification says of its algorithm may only be compared.
    func check(_ notification: SignedNotification) -> SignatureCheck
}

/// What came of checking a signature.
public enum SignatureCheck: Sendable, Equatable {
    /// The key signed this.
    case signed
    /// No key is called so.
    case unknownKey
    /// The key did not sign this, or not with its own algorithm.
    case forged
}
