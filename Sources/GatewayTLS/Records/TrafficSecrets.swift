import COpenSSL

/// What has to be known of a connection to go on with it without OpenSSL's object: the secrets its
/// handshake ended with, and how many records they have protected in each direction.
///
/// OpenSSL tells both by callbacks: the secrets as for a key log, the records as for a trace.
struct TrafficSecrets {
    private(set) var client = TrafficKeys.Secret(repeating: 0)
    private(set) var server = TrafficKeys.Secret(repeating: 0)
    private var clientBytes = 0
    private var serverBytes = 0
    /// Protected records since our, and the client's, `Finished`.
    private(set) var recordsSent: UInt64 = 0
    private(set) var recordsReceived: UInt64 = 0
    /// One side has gone on to keys that these secrets do not make.
    private var areOutdated = false

    /// Whether they make the keys in use.
    func areWhole(_ suite: RecordSuite) -> Bool {
        clientBytes == suite.secretBytes && serverBytes == suite.secretBytes && !areOutdated
    }

    // MARK: Beside OpenSSL's object

    /// Has the context's connections tell what they learn.
    static func watch(_ context: OpaquePointer) {
        SSL_CTX_set_keylog_callback(context) { ssl, line in
            guard let ssl, let line, let secrets = TrafficSecrets.of(ssl) else { return }
            secrets.pointee.take(line)
        }
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

    private static let clientLabel: StaticString = "CLIENT_TRAFFIC_SECRET_0 "
    private static let serverLabel: StaticString = "SERVER_TRAFFIC_SECRET_0 "

    /// A line of the key log: a label, the client's random and a secret, the last two in hex.
    /// Several come with every handshake, so no strings are made of them.
    mutating func take(_ line: UnsafePointer<CChar>) {
        let line = UnsafeRawBufferPointer(start: line, count: strlen(line))
        // Both labels are as long; a random is 32 bytes.
        let secret = Self.clientLabel.utf8CodeUnitCount + 2 * 32 + 1
        guard line.count > secret, line[secret - 1] == UInt8(ascii: " ") else { return }
        let hex = UnsafeRawBufferPointer(rebasing: line[secret...])
        if Self.begins(line, Self.clientLabel) {
            clientBytes = Self.read(hex, to: &client)
        } else if Self.begins(line, Self.serverLabel) {
            serverBytes = Self.read(hex, to: &server)
        }
    }

    private static func begins(_ line: UnsafeRawBufferPointer, _ label: StaticString) -> Bool {
        line.prefix(label.utf8CodeUnitCount)
            .elementsEqual(
                UnsafeRawBufferPointer(start: label.utf8Start, count: label.utf8CodeUnitCount))
    }

    /// How many bytes the secret has; none when it is no secret.
    private static func read(
        _ hex: UnsafeRawBufferPointer, to secret: inout TrafficKeys.Secret
    ) -> Int {
        guard hex.count % 2 == 0, hex.count / 2 <= TrafficKeys.secretBytesMax else { return 0 }
        for place in 0..<hex.count / 2 {
            guard let high = digit(hex[2 * place]), let low = digit(hex[2 * place + 1]) else {
                return 0
            }
            secret[place] = high << 4 | low
        }
        return hex.count / 2
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        default: nil
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
            if isSent { recordsSent = 0 } else { recordsReceived = 0 }
        case (SSL3_RT_HANDSHAKE, keyUpdate?):
            areOutdated = true
        default:
            break
        }
    }
}
