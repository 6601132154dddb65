import COpenSSL
import Glibc

/// What has to be known of a connection to go on with it without OpenSSL's object: the secrets its
/// handshake ended with, and how many records they have protected in each direction.
///
/// The secrets are heard from the key schedule (`KeySchedule`), the records from what OpenSSL tells
/// those who trace messages.
struct TrafficSecrets {
    private(set) var client = HeardKeys()
    private(set) var server = HeardKeys()
    /// Protected records since our, and the client's, `Finished`.
    private(set) var recordsSent: UInt64 = 0
    private(set) var recordsReceived: UInt64 = 0
    /// The records were told before the `Finished` they carry, as they have to be: a number that
    /// lags behind would be used twice.
    private var (areSentCounted, areReceivedCounted) = (false, false)
    /// One side has gone on to keys that these secrets do not make.
    private var areOutdated = false

    /// Whether they make the keys in use.
    func areWhole(_ suite: RecordSuite) -> Bool {
        client.secretBytes == suite.secretBytes && server.secretBytes == suite.secretBytes
            && areSentCounted && areReceivedCounted && !areOutdated
    }

    // MARK: Beside OpenSSL's object

    /// Has the context's connections tell of their records.
    static func watch(_ context: OpaquePointer) {
        SSL_CTX_set_msg_callback(context) { isSent, _, type, bytes, count, ssl, _ in
            guard let ssl, let secrets = TrafficSecrets.of(ssl) else { return }
            let first = count > 0 ? bytes?.load(as: UInt8.self) : nil
            secrets.pointee.take(isSent == 1, type, first)
        }
    }

    /// Memory for what a connection tells, until `free`.
    static func attach(to ssl: OpaquePointer) -> UnsafeMutablePointer<TrafficSecrets>? {
        let place = UnsafeMutablePointer<TrafficSecrets>.allocate(capacity: 1)
        place.initialize(to: TrafficSecrets())
        guard SSL_set_ex_data(ssl, applicationData, place) == 1 else {
            free(place)
            return nil
        }
        return place
    }

    /// The connection tells nothing any more.
    static func detach(from ssl: OpaquePointer) { SSL_set_ex_data(ssl, applicationData, nil) }

    /// Overwrites the secrets before the memory goes back; the connection is detached or gone.
    static func free(_ place: UnsafeMutablePointer<TrafficSecrets>) {
        OPENSSL_cleanse(place, MemoryLayout<TrafficSecrets>.size)
        place.deallocate()
    }

    /// The place that OpenSSL keeps for its user (`SSL_set_app_data`).
    private static let applicationData: Int32 = 0

    private static func of(_ ssl: OpaquePointer) -> UnsafeMutablePointer<TrafficSecrets>? {
        SSL_get_ex_data(ssl, applicationData)?.assumingMemoryBound(to: TrafficSecrets.self)
    }

    // MARK: What OpenSSL tells

    /// One result of the key schedule.
    mutating func take(_ derivation: Derivation, _ result: UnsafeRawBufferPointer) {
        switch derivation.label {
        case .client: client.take(secret: result)
        case .server: server.take(secret: result)
        case .key, .iv:
            // The handshake's own keys are made of other secrets.
            if server.isSecret(derivation.secret) {
                server.take(derivation.label, result)
            } else if client.isSecret(derivation.secret) {
                client.take(derivation.label, result)
            }
        }
    }

    /// One message or record, of which `first` is the first byte.
    mutating func take(_ isSent: Bool, _ type: Int32, _ first: UInt8?) {
        let (finished, keyUpdate): (UInt8, UInt8) = (20, 24)
        switch (type, first) {
        case (SSL3_RT_INNER_CONTENT_TYPE, _):
            if isSent { recordsSent += 1 } else { recordsReceived += 1 }
        case (SSL3_RT_HANDSHAKE, finished?):
            // From here on the direction's records are under the secret of this object.
            if isSent {
                (areSentCounted, recordsSent) = (recordsSent > 0, 0)
            } else {
                (areReceivedCounted, recordsReceived) = (recordsReceived > 0, 0)
            }
        case (SSL3_RT_HANDSHAKE, keyUpdate?):
            areOutdated = true
        default:
            break
        }
    }
}

/// A step of the key schedule that makes something of `TrafficSecrets` (RFC 8446 sections 7.1 and
/// 7.3).
struct Derivation {
    /// What is made.
    enum Label {
        /// The secret of what the client sends.
        case client
        /// The secret of what the server sends.
        case server
        /// A key, made of a secret.
        case key
        /// What nonces are made of, made of a secret.
        case iv

        /// `nil` for all others, of which most are told by their length.
        init?(_ text: UnsafeRawBufferPointer) {
            switch text.count {
            case 12 where text.elementsEqual("c ap traffic".utf8): self = .client
            case 12 where text.elementsEqual("s ap traffic".utf8): self = .server
            case 3 where text.elementsEqual("key".utf8): self = .key
            case 2 where text.elementsEqual("iv".utf8): self = .iv
            default: return nil
            }
        }
    }

    let label: Label
    /// What it is made of.
    let secret: UnsafeRawBufferPointer

    init(label: Label, secret: UnsafeRawBufferPointer) {
        self.label = label
        self.secret = secret
    }

    /// `nil` for all other steps, which are most of a handshake's.
    init?(_ step: SecretSchedule.Step) {
        guard let label = Label(step.label) else { return nil }
        self.init(label: label, secret: step.secret)
    }
}

/// What was heard of the keys of one direction.
struct HeardKeys {
    private(set) var secret = TrafficKeys.Secret(repeating: 0)
    private(set) var secretBytes = 0
    private(set) var key = TrafficKeys.Key(repeating: 0)
    private(set) var keyBytes = 0
    private(set) var iv = TrafficKeys.Nonce(repeating: 0)
    private(set) var ivBytes = 0

    /// Whether this is the direction's secret.
    func isSecret(_ other: UnsafeRawBufferPointer) -> Bool {
        withUnsafeBytes(of: secret) {
            areSame(UnsafeRawBufferPointer(rebasing: $0[..<secretBytes]), other)
        }
    }

    mutating func take(secret heard: UnsafeRawBufferPointer) {
        guard heard.count <= TrafficKeys.secretBytesMax else { return }
        withUnsafeMutableBytes(of: &secret) { $0.copyMemory(from: heard) }
        (secretBytes, keyBytes, ivBytes) = (heard.count, 0, 0)
    }

    /// What was made of the secret.
    mutating func take(_ label: Derivation.Label, _ heard: UnsafeRawBufferPointer) {
        switch label {
        case .key where heard.count <= TrafficKeys.keyBytesMax:
            withUnsafeMutableBytes(of: &key) { $0.copyMemory(from: heard) }
            keyBytes = heard.count
        case .iv where heard.count == TrafficKeys.nonceBytes:
            withUnsafeMutableBytes(of: &iv) { $0.copyMemory(from: heard) }
            ivBytes = heard.count
        default: break
        }
    }
}

/// Whether there is something, and the same in both.
private func areSame(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    guard one.count == other.count, let start = one.baseAddress, let otherStart = other.baseAddress
    else { return false }
    return !one.isEmpty && memcmp(start, otherStart, one.count) == 0
}
