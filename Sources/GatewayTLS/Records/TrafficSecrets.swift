import COpenSSL
import Glibc

/// What has to be known of a connection to go on with it without OpenSSL's object: the secrets its
/// handshake ended with, and how many records they have protected in each direction.
///
/// The secrets are heard from the key schedule (`KeySchedule`), the records from what OpenSSL tells
/// those who trace messages.
struct TrafficSecrets {
    private(set) var client = TrafficKeys.Secret(repeating: 0)
    private(set) var server = TrafficKeys.Secret(repeating: 0)
    private var clientBytes = 0
    private var serverBytes = 0
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
        clientBytes == suite.secretBytes && serverBytes == suite.secretBytes && areSentCounted
            && areReceivedCounted && !areOutdated
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

    /// What a secret of this object is called in the key schedule.
    enum Label: CaseIterable {
        case client
        case server

        /// All are as long.
        static let bytes = 12

        var text: StaticString {
            switch self {
            case .client: "c ap traffic"
            case .server: "s ap traffic"
            }
        }
    }

    /// The label among the parameters of a derivation, if it is one of ours. A handshake has many
    /// derivations: most are told from ours by the length alone.
    static func label(among parameters: UnsafePointer<OSSL_PARAM>) -> Label? {
        var parameter = parameters
        // Sound: OpenSSL ends its parameters by one without a key.
        while let key = parameter.pointee.key {
            if parameter.pointee.data_size == Label.bytes, let text = parameter.pointee.data,
                strcmp(key, "label") == 0
            {
                return Label.allCases.first { memcmp(text, $0.text.utf8Start, Label.bytes) == 0 }
            }
            parameter += 1
        }
        return nil
    }

    /// One result of the key schedule.
    mutating func take(_ label: Label, _ secret: UnsafeRawBufferPointer) {
        guard secret.count <= TrafficKeys.secretBytesMax else { return }
        switch label {
        case .client:
            withUnsafeMutableBytes(of: &client) { $0.copyMemory(from: secret) }
            clientBytes = secret.count
        case .server:
            withUnsafeMutableBytes(of: &server) { $0.copyMemory(from: secret) }
            serverBytes = secret.count
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
