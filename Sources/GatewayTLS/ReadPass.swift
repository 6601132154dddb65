import COpenSSL
import NIOCore

/// The outcome of one buffer of ciphertext from the peer. Nothing here calls into the pipeline: the
/// wire is shared, so everything is collected first and acted upon after the wire is given back.
struct ReadPass: Sendable {
    /// The reason why no more can be read.
    enum End: Sendable {
        /// The peer sent `close_notify`.
        case closeNotify
        /// OpenSSL cannot continue; its alert is in `answer`.
        case failed(TLSError)
    }

    /// The decrypted bytes: at most what the buffer and one record kept from before can hold.
    private(set) var plaintext: ByteBuffer?
    /// Ciphertext to send in answer: key updates, alerts.
    private(set) var answer: ByteBuffer?
    /// The reason why no more can be read; `nil` while more may come.
    private(set) var end: End?

    /// Lends `input` to OpenSSL and collects the outcome. `budget` limits records without content.
    mutating func run(
        with ssl: OpaquePointer, on wire: MemoryBIO, input: ByteBuffer,
        allocator: ByteBufferAllocator, _ budget: inout InputBudget, _ rate: InputBudget.Rate
    ) {
        input.withUnsafeReadableBytes { bytes in
            let units = budget.available(rate, now: .now())
            wire.begin(input: bytes, units: units)
            decrypt(ssl, wire, allocator)
            answer = wire.takeOutput(allocator)
            budget.settle(units - wire.unitsLeft)
            wire.finish()
        }
    }

    // MARK: During a use of the wire

    /// Continues the handshake; returns whether it is done.
    mutating func handshake(_ ssl: OpaquePointer) -> Bool {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        if result == 1 { return true }
        guard SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ else { return false }
        let failure = OpenSSLErrors.handshakeFailure()
        let reason = OpenSSLErrors.takeHandshakeReason()
        end = .failed(TLSError(.handshakeFailed(failure), "handshake failed: \(reason)"))
        return false
    }

    /// One record for a peer that speaks HTTP without TLS, to which OpenSSL sends no alert: fatal
    /// `unexpected_message` (RFC 8446 section 5.1). Empty for all other peers.
    var refusal: [UInt8] {
        guard case .failed(let error)? = end, error.code == .handshakeFailed(.plainHTTP) else {
            return []
        }
        return [21, 3, 1, 0, 2, 2, UInt8(SSL3_AD_UNEXPECTED_MESSAGE)]
    }

    /// Decrypts the input lent to the wire into `plaintext`.
    mutating func decrypt(
        _ ssl: OpaquePointer, _ wire: MemoryBIO, _ allocator: ByteBufferAllocator
    ) {
        end = Self.readRecords(ssl, wire) { content in
            if plaintext == nil {
                plaintext = allocator.buffer(capacity: content.count + wire.inputLeft)
            }
            plaintext?.writeBytes(content)
        }
        guard wire.isRefused else { return }
        end = .failed(
            TLSError(.protocolViolation(.emptyRecords), "the peer sends records without content"))
    }

    /// Decrypts the input lent to the wire, and calls `take` with each piece of plaintext, which is
    /// valid until it returns.
    ///
    /// - Returns: The reason why no more can be read; `nil` while more may come.
    static func readRecords(
        _ ssl: OpaquePointer, _ wire: MemoryBIO, _ take: (UnsafeRawBufferPointer) -> Void
    ) -> End? {
        while true {
            ERR_clear_error()
            var count = 0
            let result = SSL_read_ex(ssl, wire.scratch.baseAddress, wire.scratch.count, &count)
            guard result == 1 else { return Self.end(ssl, result) }
            take(UnsafeRawBufferPointer(rebasing: wire.scratch[..<count]))
            wire.creditContent()
        }
    }

    private static func end(_ ssl: OpaquePointer, _ result: Int32) -> End? {
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ:
            return nil
        case SSL_ERROR_ZERO_RETURN:
            return .closeNotify
        default:
            let isAlert = ERR_GET_REASON(ERR_peek_error()) >= SSL_AD_REASON_OFFSET
            let reason = OpenSSLErrors.takeReason()
            return .failed(
                isAlert
                    ? TLSError(.truncated, "the peer ended the connection: \(reason)")
                    : TLSError(
                        .protocolViolation(.malformed), "the peer broke the protocol: \(reason)"))
        }
    }
}
