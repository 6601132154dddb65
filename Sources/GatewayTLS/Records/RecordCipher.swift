import COpenSSL

/// Seals and opens records of TLS 1.3 (RFC 8446 section 5.2) with keys that the caller passes in.
/// One object serves all connections of a loop, which keep nothing but their keys. Used by one
/// thread.
final class RecordCipher {
    /// The most records protected by one key before the next key is derived. AES-GCM is safe for up
    /// to 2^24.5 (RFC 8446 section 5.5).
    static let recordsPerKeyMax: UInt64 = 1 << 23

    private let sealing: [OpaquePointer]
    private let opening: [OpaquePointer]
    private let expander: HKDFExpander
    private let recordsPerKeyMax: UInt64

    /// Returns `nil` when OpenSSL has no memory.
    init?(recordsPerKeyMax: UInt64 = RecordCipher.recordsPerKeyMax) {
        guard let expander = HKDFExpander() else { return nil }
        self.expander = expander
        self.recordsPerKeyMax = recordsPerKeyMax
        var contexts: [OpaquePointer] = []
        for isSealing in [true, false] {
            for suite in RecordSuite.allCases {
                guard let context = EVP_CIPHER_CTX_new() else { break }
                contexts.append(context)
                EVP_CipherInit_ex(context, suite.cipher, nil, nil, nil, isSealing ? 1 : 0)
            }
        }
        let suites = RecordSuite.allCases.count
        guard contexts.count == 2 * suites else {
            for context in contexts { EVP_CIPHER_CTX_free(context) }
            return nil
        }
        sealing = Array(contexts[..<suites])
        opening = Array(contexts[suites...])
    }

    deinit { for context in sealing + opening { EVP_CIPHER_CTX_free(context) } }

    // MARK: Sending

    /// Seals `content` in as few records as possible and appends them to the wire's output. Returns
    /// false when OpenSSL refuses: the connection cannot continue then.
    @inline(__always)
    func seal(
        _ content: UnsafeRawBufferPointer, as type: RecordContent = .applicationData,
        _ layer: UnsafeMutablePointer<RecordLayer>, to wire: MemoryBIO
    ) -> Bool {
        var rest = content
        while rest.count > MemoryBIO.recordContentBytesMax {
            let piece = UnsafeRawBufferPointer(rebasing: rest[..<MemoryBIO.recordContentBytesMax])
            guard sealOne(piece, as: type, layer, to: wire) else { return false }
            rest = UnsafeRawBufferPointer(rebasing: rest[piece.count...])
        }
        return sealOne(rest, as: type, layer, to: wire)
    }

    /// Appends an alert to the wire's output; returns false when OpenSSL refuses.
    func seal(
        _ alert: Alert, _ layer: UnsafeMutablePointer<RecordLayer>, to wire: MemoryBIO
    ) -> Bool {
        let (warning, fatal): (UInt8, UInt8) = (1, 2)
        let bytes = [alert == .closeNotify ? warning : fatal, alert.rawValue]
        return bytes.withUnsafeBytes { sealOne($0, as: .alert, layer, to: wire) }
    }

    /// Announces to the peer that our next record uses the next key, and derives that key (RFC 8446
    /// section 4.6.3).
    func sealKeyUpdate(_ layer: UnsafeMutablePointer<RecordLayer>, to wire: MemoryBIO) -> Bool {
        let updateNotRequested: [UInt8] = [24, 0, 0, 1, 0]
        return updateNotRequested.withUnsafeBytes { protect($0, as: .handshake, layer, to: wire) }
            && layer.pointee.sending.update(layer.pointee.suite, by: expander)
    }

    private func sealOne(
        _ content: UnsafeRawBufferPointer, as type: RecordContent,
        _ layer: UnsafeMutablePointer<RecordLayer>, to wire: MemoryBIO
    ) -> Bool {
        if layer.pointee.sending.recordNumber >= recordsPerKeyMax {
            guard sealKeyUpdate(layer, to: wire) else { return false }
        }
        return protect(content, as: type, layer, to: wire)
    }

    private func protect(
        _ content: UnsafeRawBufferPointer, as type: RecordContent,
        _ layer: UnsafeMutablePointer<RecordLayer>, to wire: MemoryBIO
    ) -> Bool {
        let context = sealing[Int(layer.pointee.suite.rawValue)]
        let inner = content.count + 1
        let body = inner + RecordSuite.tagBytes
        let record = wire.room(for: RecordFraming.headerBytes + body)
        record[0] = RecordContent.applicationData.rawValue
        record[1] = 3
        record[2] = 3
        record[3] = UInt8(truncatingIfNeeded: body >> 8)
        record[4] = UInt8(truncatingIfNeeded: body)
        let sealed = record + RecordFraming.headerBytes
        var type = type.rawValue
        var count: Int32 = 0
        guard layer.pointee.sending.beginRecord(context),
            EVP_EncryptUpdate(context, nil, &count, record, Int32(RecordFraming.headerBytes)) == 1,
            EVP_EncryptUpdate(
                context, sealed, &count, content.baseAddress?.assumingMemoryBound(to: UInt8.self),
                Int32(content.count)) == 1,
            EVP_EncryptUpdate(context, sealed + content.count, &count, &type, 1) == 1,
            EVP_EncryptFinal_ex(context, sealed + inner, &count) == 1,
            EVP_CIPHER_CTX_ctrl(
                context, EVP_CTRL_AEAD_GET_TAG, Int32(RecordSuite.tagBytes), sealed + inner) == 1
        else { return false }
        wire.wrote(RecordFraming.headerBytes + body)
        return true
    }

    // MARK: Receiving

    /// The result of opening a record: its type and content, or the alert to refuse it with.
    enum Opened {
        case content(UInt8, UnsafeRawBufferPointer)
        case refused(Alert)
    }

    /// Decrypts a whole record in place.
    func open(
        _ record: UnsafeMutableRawBufferPointer, _ layer: UnsafeMutablePointer<RecordLayer>
    ) -> Opened {
        let suite = layer.pointee.suite
        let header = RecordFraming.headerBytes
        guard
            layer.pointee.receiving.derive(suite, by: expander),
            let start = record.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return .refused(.internalError) }
        let context = opening[Int(suite.rawValue)]
        let inner = record.count - header - RecordSuite.tagBytes
        let sealed = start + header
        var count: Int32 = 0
        guard layer.pointee.receiving.beginRecord(context),
            EVP_DecryptUpdate(context, nil, &count, start, Int32(header)) == 1,
            EVP_DecryptUpdate(context, sealed, &count, sealed, Int32(inner)) == 1,
            EVP_CIPHER_CTX_ctrl(
                context, EVP_CTRL_AEAD_SET_TAG, Int32(RecordSuite.tagBytes), sealed + inner) == 1
        else {
            ERR_clear_error()
            return .refused(.internalError)
        }
        guard EVP_DecryptFinal_ex(context, sealed + inner, &count) == 1 else {
            ERR_clear_error()
            return .refused(.badRecordMAC)
        }
        guard inner <= MemoryBIO.recordContentBytesMax + 1 else { return .refused(.recordOverflow) }
        // Section 5.4: padding is zeros after the content's type.
        var end = inner - 1
        while end >= 0, sealed[end] == 0 { end -= 1 }
        guard end >= 0 else { return .refused(.unexpectedMessage) }
        return .content(sealed[end], UnsafeRawBufferPointer(start: sealed, count: end))
    }

    /// Derives the key of the client's next record; returns false when OpenSSL refuses.
    func updateReceiving(_ layer: UnsafeMutablePointer<RecordLayer>) -> Bool {
        layer.pointee.receiving.update(layer.pointee.suite, by: expander)
    }
}
