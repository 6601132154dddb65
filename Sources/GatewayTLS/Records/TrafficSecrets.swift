import COpenSSL
import Glibc

/// The part of a TLS 1.3 connection's state that OpenSSL has no getter for: the traffic secrets
/// that its handshake ended with, and the number of records that they have protected in each
/// direction. With them `RecordLayer` replaces OpenSSL's object.
///
/// OpenSSL's key log callback reports the secrets, its message callback the records. Both write
/// straight to memory that `free` overwrites; no secret is printed, logged or copied to a string.
struct TrafficSecrets {
    /// The secret of one direction.
    struct Secret {
        fileprivate(set) var bytes = TrafficKeys.Secret(repeating: 0)
        /// The length of the secret, in bytes; 0 before it is known.
        fileprivate(set) var count = 0
    }

    private(set) var client = Secret()
    private(set) var server = Secret()
    /// Protected records since our `Finished` and the client's `Finished`, respectively.
    private(set) var recordsSent: UInt64 = 0
    private(set) var recordsReceived: UInt64 = 0
    /// Whether records were reported before the `Finished` that they carry, as is required: a
    /// record number that lags behind would be used twice.
    private var (areSentCounted, areReceivedCounted) = (false, false)
    /// Whether one side has updated its keys, so that these secrets no longer apply.
    private var areOutdated = false

    /// Returns whether both secrets and both record numbers are known and belong to the keys in
    /// use.
    func areComplete(for suite: RecordSuite) -> Bool {
        client.count == suite.secretBytes && server.count == suite.secretBytes
            && areSentCounted && areReceivedCounted && !areOutdated
    }

    // MARK: Attaching to OpenSSL's object

    /// Makes the connections of a context report their secrets and records.
    static func observe(_ context: OpaquePointer) {
        SSL_CTX_set_keylog_callback(context) { ssl, line in
            guard let ssl, let line, let secrets = TrafficSecrets.of(ssl) else { return }
            // Sound: OpenSSL's line ends with a zero; it overwrites the line after this call.
            secrets.pointee.readKeyLog(
                UnsafeRawBufferPointer(start: line, count: strlen(line)))
        }
        SSL_CTX_set_msg_callback(context) { isSent, _, type, bytes, count, ssl, _ in
            guard let ssl else { return }
            if isSent == 0 { MemoryBIO.charge(ssl, for: type) }
            guard let secrets = TrafficSecrets.of(ssl) else { return }
            let first = count > 0 ? bytes?.load(as: UInt8.self) : nil
            secrets.pointee.record(isSent: isSent == 1, type: type, firstByte: first)
        }
    }

    /// Allocates memory for a connection's reports, which `free` releases; `nil` when OpenSSL
    /// refuses.
    static func attach(to ssl: OpaquePointer) -> UnsafeMutablePointer<TrafficSecrets>? {
        let place = UnsafeMutablePointer<TrafficSecrets>.allocate(capacity: 1)
        place.initialize(to: TrafficSecrets())
        guard SSL_set_ex_data(ssl, applicationData, place) == 1 else {
            free(place)
            return nil
        }
        return place
    }

    /// Ends a connection's reports.
    static func detach(from ssl: OpaquePointer) { SSL_set_ex_data(ssl, applicationData, nil) }

    /// Overwrites the secrets, then releases the memory; the connection must be detached or freed.
    static func free(_ place: UnsafeMutablePointer<TrafficSecrets>) {
        OPENSSL_cleanse(place, MemoryLayout<TrafficSecrets>.size)
        place.deallocate()
    }

    /// The index that OpenSSL reserves for the application (`SSL_set_app_data`).
    private static let applicationData: Int32 = 0

    private static func of(_ ssl: OpaquePointer) -> UnsafeMutablePointer<TrafficSecrets>? {
        SSL_get_ex_data(ssl, applicationData)?.assumingMemoryBound(to: TrafficSecrets.self)
    }

    // MARK: Reports

    private static let clientLabel: StaticString = "CLIENT_TRAFFIC_SECRET_0 "
    private static let serverLabel: StaticString = "SERVER_TRAFFIC_SECRET_0 "

    /// Reads one line of the key log: a label, the client's random and a secret, the last two in
    /// hex (SSL_CTX_set_keylog_callback(3)). A handshake logs several lines; those with other
    /// labels are ignored.
    mutating func readKeyLog(_ line: UnsafeRawBufferPointer) {
        // Both labels have the same length; a random is 32 bytes.
        let start = Self.clientLabel.utf8CodeUnitCount + 2 * 32 + 1
        guard line.count > start, line[start - 1] == UInt8(ascii: " ") else { return }
        let hex = UnsafeRawBufferPointer(rebasing: line[start...])
        if Self.begins(line, Self.clientLabel) {
            client.read(hex: hex)
        } else if Self.begins(line, Self.serverLabel) {
            server.read(hex: hex)
        }
    }

    private static func begins(_ line: UnsafeRawBufferPointer, _ label: StaticString) -> Bool {
        line.prefix(label.utf8CodeUnitCount)
            .elementsEqual(
                UnsafeBufferPointer(start: label.utf8Start, count: label.utf8CodeUnitCount))
    }

    /// Counts one message or record.
    mutating func record(isSent: Bool, type: Int32, firstByte: UInt8?) {
        let (finished, keyUpdate): (UInt8, UInt8) = (20, 24)
        switch (type, firstByte) {
        case (SSL3_RT_INNER_CONTENT_TYPE, _):
            if isSent { recordsSent += 1 } else { recordsReceived += 1 }
        case (SSL3_RT_HANDSHAKE, finished?):
            // From here on this direction's records use the secret in this object.
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

extension TrafficSecrets.Secret {
    /// Reads the secret; leaves it empty if the text cannot be a TLS 1.3 secret.
    fileprivate mutating func read(hex: UnsafeRawBufferPointer) {
        count = 0
        guard hex.count % 2 == 0, hex.count / 2 <= TrafficKeys.secretBytesMax else { return }
        for index in 0..<hex.count / 2 {
            guard let high = Self.digit(hex[2 * index]), let low = Self.digit(hex[2 * index + 1])
            else { return }
            bytes[index] = high << 4 | low
        }
        count = hex.count / 2
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
