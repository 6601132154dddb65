import COpenSSL
import Glibc

/// The record protocol of one TLS 1.3 connection after its handshake (RFC 8446 section 5), without
/// OpenSSL's object.
///
/// It exists for event streams, which are held open by the thousand and mostly idle: it is little
/// more than two secrets with their keys. ``TLSStream`` says how much memory that saves.
struct RecordLayer {
    let suite: RecordSuite
    var sending: TrafficKeys
    var receiving: TrafficKeys
    /// The beginning of a record whose rest has not arrived; shorter than a whole record.
    var partial: [UInt8] = []
    var messages = PeerMessages()

    /// Takes over from OpenSSL's object. Returns `nil` for TLS 1.2, when OpenSSL holds a part of a
    /// record, when keys have changed since the handshake, and when the peer has asked for shorter
    /// records: then only OpenSSL can continue.
    init?(of ssl: OpaquePointer, _ secrets: borrowing TrafficSecrets) {
        guard let suite = RecordSuite(of: ssl), secrets.areComplete(for: suite),
            SSL_has_pending(ssl) == 0, !Self.hasBegunRecord(ssl),
            SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl)) == 0
        else { return nil }
        self.init(
            suite: suite,
            sending: TrafficKeys(
                secret: secrets.server.bytes, recordNumber: secrets.recordsSent),
            receiving: TrafficKeys(
                secret: secrets.client.bytes, recordNumber: secrets.recordsReceived))
    }

    /// Whether OpenSSL has read exactly the header of a record: then nothing of it is pending, but
    /// the header is gone from the socket.
    private static func hasBegunRecord(_ ssl: OpaquePointer) -> Bool {
        // Sound: a constant text of two letters: the body of a record is read next.
        SSL_rstate_string(ssl).map { strcmp($0, "RB") == 0 } ?? true
    }

    init(suite: RecordSuite, sending: TrafficKeys, receiving: TrafficKeys) {
        self.suite = suite
        self.sending = sending
        self.receiving = receiving
    }

    /// Derives the keys that sealing needs; returns false when OpenSSL refuses.
    mutating func prepare(_ expander: HKDFExpander) -> Bool {
        sending.derive(suite, by: expander)
    }

    /// Moves a layer to memory of its own, which `free` releases.
    static func allocate(_ layer: RecordLayer) -> UnsafeMutablePointer<RecordLayer> {
        let place = UnsafeMutablePointer<RecordLayer>.allocate(capacity: 1)
        place.initialize(to: layer)
        return place
    }

    /// Overwrites the secrets, then releases the memory.
    static func free(_ place: UnsafeMutablePointer<RecordLayer>) {
        place.deinitialize(count: 1)
        OPENSSL_cleanse(place, MemoryLayout<RecordLayer>.size)
        place.deallocate()
    }
}

/// The record at the start of the bytes received from the peer.
enum RecordFraming: Equatable {
    /// Not enough bytes for a whole record.
    case incomplete
    /// A record of this length, header included.
    case record(bytes: Int)
    /// Not a record that is allowed now.
    case refused(Alert)

    static let headerBytes = 5
    /// RFC 8446 section 5.2: 2^14 bytes of content and 256 more.
    static let bodyBytesMax = 16 * 1024 + 256

    /// Reads the header of the record at the start of `bytes`.
    init(_ bytes: UnsafeRawBufferPointer) {
        guard let type = bytes.first else {
            self = .incomplete
            return
        }
        // After the handshake every record is protected, and all protected records look alike.
        guard type == RecordContent.applicationData.rawValue else {
            self = .refused(.unexpectedMessage)
            return
        }
        guard bytes.count >= Self.headerBytes else {
            self = .incomplete
            return
        }
        let body = Int(bytes[3]) << 8 | Int(bytes[4])
        if body > Self.bodyBytesMax {
            self = .refused(.recordOverflow)
        } else if body <= RecordSuite.tagBytes {
            self = .refused(.badRecordMAC)
        } else {
            let whole = Self.headerBytes + body
            self = bytes.count < whole ? .incomplete : .record(bytes: whole)
        }
    }
}
