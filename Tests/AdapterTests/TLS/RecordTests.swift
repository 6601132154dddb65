import COpenSSL
import Glibc
import Testing

@testable import GatewayTLS

/// The interpretation of records, without sockets.
struct RecordTests {
    // MARK: Framing

    private func framing(_ bytes: [UInt8]) -> RecordFraming {
        bytes.withUnsafeBytes { RecordFraming($0) }
    }

    /// Every type, every length and every cut of a header.
    @Test func onlyWholeProtectedRecordsOfAllowedLengthPass() {
        #expect(framing([]) == .incomplete)
        for type in UInt8.min...UInt8.max where type != 23 {
            #expect(framing([type]) == .refused(.unexpectedMessage))
            #expect(framing([type, 3, 3, 0, 30]) == .refused(.unexpectedMessage))
        }
        for count in 1..<5 {
            #expect(framing(Array([23, 3, 3, 255, 255].prefix(count))) == .incomplete)
        }
        for length in 0...Int(UInt16.max) {
            let header: [UInt8] = [23, 3, 3, UInt8(length >> 8), UInt8(length & 255)]
            switch length {
            case ...16: #expect(framing(header) == .refused(.badRecordMAC))
            case ...16_640: #expect(framing(header) == .incomplete)
            default: #expect(framing(header) == .refused(.recordOverflow))
            }
        }
        let whole = [23, 3, 3, 1, 0] + [UInt8](repeating: 7, count: 256)
        #expect(framing(whole) == .record(bytes: 261))
        #expect(framing(whole.dropLast()) == .incomplete)
        #expect(framing(whole + [1, 2, 3]) == .record(bytes: 261))
        // The version is a legacy field and is ignored (RFC 8446 section 5.1).
        #expect(framing([23, 9, 9] + whole[3...]) == .record(bytes: 261))
    }

    // MARK: Messages

    private func take(
        _ messages: inout PeerMessages, _ type: UInt8, _ content: [UInt8]
    ) -> PeerMessages.Action {
        content.withUnsafeBytes { messages.take(type, $0) }
    }

    @Test func everyContentTypeAndAlertHasOneMeaning() {
        for type in UInt8.min...UInt8.max where !(21...23).contains(type) {
            var messages = PeerMessages()
            #expect(take(&messages, type, [1, 2]) == .refuse(.unexpectedMessage))
        }
        var messages = PeerMessages()
        for content: [UInt8] in [[], [1], pattern(16_384)] {
            #expect(take(&messages, 23, content) == .none)
        }
        for level in UInt8.min...UInt8.max {
            for alert in UInt8.min...UInt8.max {
                let action = take(&messages, 21, [level, alert])
                switch alert {
                case 0: #expect(action == .goodbye)
                case 90: #expect(action == .none)
                default: #expect(action == .lost)
                }
            }
        }
        #expect(take(&messages, 21, []) == .refuse(.unexpectedMessage))
        #expect(take(&messages, 21, [1]) == .refuse(.decodeError))
        #expect(take(&messages, 21, [1, 0, 0]) == .refuse(.decodeError))
    }

    /// A key update has the same meaning however it is split into records.
    @Test func aKeyUpdateMayBeSpreadOverRecords() {
        for request in UInt8.min...UInt8.max {
            let message: [UInt8] = [24, 0, 0, 1, request]
            for cuts in 0..<16 {
                var messages = PeerMessages()
                var actions: [PeerMessages.Action] = []
                var piece: [UInt8] = []
                for (place, byte) in message.enumerated() {
                    piece.append(byte)
                    guard place == 4 || cuts >> place & 1 == 1 else { continue }
                    actions.append(take(&messages, 22, piece))
                    piece = []
                }
                #expect(actions.dropLast().allSatisfy { $0 == .none })
                switch request {
                case 0: #expect(actions.last == .updateKeys(answered: false))
                case 1: #expect(actions.last == .updateKeys(answered: true))
                default: #expect(actions.last == .refuse(.illegalParameter))
                }
            }
        }
    }

    @Test func otherHandshakeMessagesAreRefused() {
        for type in UInt8.min...UInt8.max where type != 24 {
            for count in 1...60 {
                var messages = PeerMessages()
                let content = [type] + pattern(count - 1)
                #expect(take(&messages, 22, content) == .refuse(.unexpectedMessage))
            }
        }
        for (content, alert): ([UInt8], Alert) in [
            ([], .unexpectedMessage),
            ([24, 0, 0, 1, 0, 24], .unexpectedMessage),
            ([24, 0, 0, 1, 0, 24, 0, 0, 1, 0], .unexpectedMessage),
            ([24, 0, 0, 2], .decodeError),
            ([24, 1], .decodeError),
            ([24, 0, 0, 0], .decodeError),
            ([24, 0, 0, 2, 0, 0], .decodeError),
        ] {
            var messages = PeerMessages()
            #expect(take(&messages, 22, content) == .refuse(alert))
        }
        // No other record may come between the parts of a message.
        for type: UInt8 in [21, 23] {
            var messages = PeerMessages()
            #expect(take(&messages, 22, [24, 0]) == .none)
            #expect(take(&messages, type, [1, 0]) == .refuse(.unexpectedMessage))
        }
    }

    // MARK: Keys

    private func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
        }
    }

    private func secret(_ bytes: [UInt8]) -> TrafficKeys.Secret {
        var secret = TrafficKeys.Secret(repeating: 0)
        for (place, byte) in bytes.enumerated() { secret[place] = byte }
        return secret
    }

    private func sealed(
        _ content: [UInt8], _ type: RecordContent, _ layer: RecordLayer, _ cipher: RecordCipher
    ) throws -> [UInt8] {
        let wire = try #require(MemoryBIO.ofThread())
        let place = RecordLayer.allocate(layer)
        defer { RecordLayer.free(place) }
        wire.begin()
        defer { wire.finish() }
        #expect(content.withUnsafeBytes { cipher.seal($0, as: type, place, to: wire) })
        return Array(wire.output)
    }

    /// RFC 8448 section 3: the server's application traffic secret and its second record.
    @Test func keysAndRecordsAreThoseOfTheStandard() throws {
        let cipher = try #require(RecordCipher())
        let expander = try #require(HKDFExpander())
        var layer = RecordLayer(
            suite: .aes128GCM,
            sending: TrafficKeys(
                secret: secret(
                    bytes(
                        """
                        a11af9f05531f856ad47116b45a95032
                        8204b4f44bfb6b3a4b4f1f3fcb631643
                        """)), recordNumber: 1),
            receiving: TrafficKeys(secret: secret([]), recordNumber: 0))
        let isPrepared = layer.prepare(expander)
        #expect(isPrepared)
        let expected = bytes(
            """
            1703030043
            2e937e11ef4ac740e538ad36005fc4a4
            6932fc3225d05f82aa1b36e30efaf97d
            90e6dffc602dcb501a59a8fcc49c4bf2
            e5f0a21c0047c2abf332540dd032e167
            c2955d
            """)
        #expect(try sealed(Array(0..<50), .applicationData, layer, cipher) == expected)
    }

    private func pair(_ suite: RecordSuite, _ seed: Int) -> (RecordLayer, RecordLayer) {
        let one = secret(pattern(suite.secretBytes, seed: seed))
        let other = secret(pattern(suite.secretBytes, seed: seed + 1))
        func layer(_ sending: TrafficKeys.Secret, _ receiving: TrafficKeys.Secret) -> RecordLayer {
            RecordLayer(
                suite: suite, sending: TrafficKeys(secret: sending, recordNumber: 0),
                receiving: TrafficKeys(secret: receiving, recordNumber: 0))
        }
        return (layer(one, other), layer(other, one))
    }

    /// One side opens what the other seals, over many records and keys; nothing else opens.
    @Test(arguments: RecordSuite.allCases) func whatIsSealedOpens(suite: RecordSuite) throws {
        let cipher = try #require(RecordCipher(recordsPerKeyMax: 7))
        let expander = try #require(HKDFExpander())
        let wire = try #require(MemoryBIO.ofThread())
        var (left, right) = pair(suite, 1)
        let isPrepared = left.prepare(expander)
        #expect(isPrepared)
        let (sender, receiver) = (RecordLayer.allocate(left), RecordLayer.allocate(right))
        defer {
            RecordLayer.free(sender)
            RecordLayer.free(receiver)
        }
        var updates = 0
        for round in 0..<200 {
            let content = pattern(round % 3 == 0 ? round * 300 : round, seed: round)
            wire.begin()
            #expect(content.withUnsafeBytes { cipher.seal($0, sender, to: wire) })
            var stream = Array(wire.output)
            wire.finish()
            var received: [UInt8] = []
            try stream.withUnsafeMutableBytes { bytes in
                var rest = bytes[...]
                while case .record(let count) = RecordFraming(
                    UnsafeRawBufferPointer(rebasing: rest))
                {
                    let record = UnsafeMutableRawBufferPointer(rebasing: rest.prefix(count))
                    rest = rest.dropFirst(count)
                    guard case .content(let type, let content) = cipher.open(record, receiver)
                    else {
                        Issue.record("record of round \(round) does not open")
                        return
                    }
                    let action = receiver.pointee.messages.take(type, content)
                    if action == .updateKeys(answered: false) {
                        updates += 1
                        try #require(cipher.updateReceiving(receiver))
                    } else {
                        #expect(action == .none)
                        received.append(contentsOf: content)
                    }
                }
                #expect(rest.isEmpty)
            }
            #expect(received == content)
        }
        #expect(updates > 30)
        right = receiver.pointee
        #expect(right.receiving.recordNumber <= 7)
    }

    /// Any bit that differs, any record omitted or repeated.
    @Test(arguments: RecordSuite.allCases) func nothingElseOpens(suite: RecordSuite) throws {
        let cipher = try #require(RecordCipher())
        let expander = try #require(HKDFExpander())
        var (left, right) = pair(suite, 5)
        let isPrepared = left.prepare(expander)
        #expect(isPrepared)
        let record = try sealed(pattern(20), .applicationData, left, cipher)
        func opens(_ record: [UInt8], _ layer: RecordLayer) -> Bool {
            let place = RecordLayer.allocate(layer)
            defer { RecordLayer.free(place) }
            var record = record
            return record.withUnsafeMutableBytes {
                if case .content = cipher.open($0, place) { true } else { false }
            }
        }
        #expect(opens(record, right))
        for place in record.indices {
            for bit in 0..<8 {
                var other = record
                other[place] ^= 1 << bit
                #expect(!opens(other, right))
            }
        }
        #expect(!opens(record.dropLast(), right))
        var skipping = right
        let context = try #require(EVP_CIPHER_CTX_new())
        defer { EVP_CIPHER_CTX_free(context) }
        EVP_DecryptInit_ex(context, suite.cipher, nil, nil, nil)
        let isSkipped = skipping.receiving.beginRecord(context)
        #expect(isSkipped)
        #expect(!opens(record, skipping))
        #expect(!opens(record, pair(suite, 6).1))
    }

    @Test func paddingIsDroppedAndMayNotBeAll() throws {
        let cipher = try #require(RecordCipher())
        let expander = try #require(HKDFExpander())
        // Content, type and padding together as inner plaintext; a type of zero is padding.
        let cases: [(inner: [UInt8], type: UInt8?, count: Int, alert: Alert?)] = [
            ([1, 2, 23, 0, 0], 23, 2, nil),
            ([22], 22, 0, nil),
            ([UInt8](repeating: 1, count: 16_385), 1, 16_384, nil),
            ([0, 0, 0], nil, 0, .unexpectedMessage),
            ([UInt8](repeating: 1, count: 16_386), nil, 0, .recordOverflow),
        ]
        // The version in a header has no meaning, but is authenticated as it came (section 5.1).
        for version: UInt8 in [1, 3] {
            for (inner, type, count, alert) in cases {
                let (sending, receiving) = pair(.aes128GCM, 9)
                var left = sending
                let isPrepared = left.prepare(expander)
                #expect(isPrepared)
                var record = try seal(inner: inner, minorVersion: version, with: &left)
                let place = RecordLayer.allocate(receiving)
                defer { RecordLayer.free(place) }
                record.withUnsafeMutableBytes {
                    switch cipher.open($0, place) {
                    case .content(let opened, let content):
                        #expect(opened == type)
                        #expect(content.count == count)
                    case .refused(let refused):
                        #expect(refused == alert)
                    }
                }
            }
        }
    }

    /// Returns a record of any inner plaintext, made with OpenSSL alone.
    private func seal(
        inner: [UInt8], minorVersion: UInt8, with layer: inout RecordLayer
    ) throws -> [UInt8] {
        let context = try #require(EVP_CIPHER_CTX_new())
        defer { EVP_CIPHER_CTX_free(context) }
        let body = inner.count + 16
        let header: [UInt8] = [23, 3, minorVersion, UInt8(body >> 8), UInt8(body & 255)]
        var sealed = [UInt8](repeating: 0, count: body)
        var count: Int32 = 0
        EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nil, nil, nil)
        let isBegun = layer.sending.beginRecord(context)
        #expect(isBegun)
        sealed.withUnsafeMutableBufferPointer {
            EVP_EncryptUpdate(context, nil, &count, header, 5)
            EVP_EncryptUpdate(context, $0.baseAddress, &count, inner, Int32(inner.count))
        }
        var rest: Int32 = 0
        sealed.withUnsafeMutableBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return }
            EVP_EncryptFinal_ex(context, start + inner.count, &rest)
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, start + inner.count)
        }
        return header + sealed
    }

    // MARK: Secrets

    private func read(_ line: String, into secrets: inout TrafficSecrets) {
        Array(line.utf8).withUnsafeBytes { secrets.readKeyLog($0) }
    }

    private func line(_ label: String, _ byte: String, count: Int) -> String {
        let random = String(repeating: "ab", count: 32)
        return "\(label) \(random) " + String(repeating: byte, count: count)
    }

    /// Reports a `Finished` of both sides, with its record counted before it.
    private func finish(_ secrets: inout TrafficSecrets) {
        for isSent in [true, false] {
            secrets.record(isSent: isSent, type: SSL3_RT_INNER_CONTENT_TYPE, firstByte: 22)
            secrets.record(isSent: isSent, type: SSL3_RT_HANDSHAKE, firstByte: 20)
        }
    }

    /// Secrets are read from the lines of application traffic; every other line is ignored.
    @Test func secretsAreReadFromTheLinesThatHoldThem() {
        var secrets = TrafficSecrets()
        finish(&secrets)
        let client = "CLIENT_TRAFFIC_SECRET_0"
        for other in [
            "", client, client + " ", line("CLIENT_RANDOM", "00", count: 48),
            line(client, "zz", count: 32), line(client, "0F", count: 32),
            line(client, "00", count: 31) + "0", line(client, "00", count: 49),
            line(client, "00", count: 0), line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "11", count: 32),
            line("SERVER_HANDSHAKE_TRAFFIC_SECRET", "11", count: 32),
            line("EXPORTER_SECRET", "11", count: 32),
            line("CLIENT_TRAFFIC_SECRET_1", "11", count: 32),
            line(client, "00", count: 32).replacing(" ", with: "_"),
        ] {
            read(other, into: &secrets)
            read(line("SERVER_TRAFFIC_SECRET_0", "e1", count: 32), into: &secrets)
            #expect(RecordSuite.allCases.allSatisfy { !secrets.areComplete(for: $0) }, "\(other)")
        }
        read(line(client, "0f", count: 32), into: &secrets)
        #expect(secrets.areComplete(for: .aes128GCM) && secrets.areComplete(for: .chaCha20Poly1305))
        #expect(!secrets.areComplete(for: .aes256GCM))
        #expect(secrets.client.bytes[0] == 0x0F && secrets.client.bytes[31] == 0x0F)
        #expect(secrets.server.bytes[0] == 0xE1 && secrets.server.bytes[31] == 0xE1)
        // An invalid secret invalidates the previous one.
        read(line(client, "0g", count: 32), into: &secrets)
        #expect(!secrets.areComplete(for: .aes128GCM))
        for label in [client, "SERVER_TRAFFIC_SECRET_0"] {
            read(line(label, "5a", count: 48), into: &secrets)
        }
        #expect(secrets.areComplete(for: .aes256GCM) && !secrets.areComplete(for: .aes128GCM))
    }

    @Test func recordsCountFromFinishedOn() {
        var secrets = TrafficSecrets()
        for label in ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"] {
            read(line(label, "0f", count: 32), into: &secrets)
        }
        // The record of a Finished has to be counted before it.
        for isSent in [true, false] {
            secrets.record(isSent: isSent, type: SSL3_RT_HANDSHAKE, firstByte: 20)
            #expect(!secrets.areComplete(for: .aes128GCM))
        }
        finish(&secrets)
        #expect(secrets.areComplete(for: .aes128GCM))
        secrets.record(isSent: true, type: SSL3_RT_INNER_CONTENT_TYPE, firstByte: 22)
        secrets.record(isSent: true, type: SSL3_RT_INNER_CONTENT_TYPE, firstByte: 23)
        secrets.record(isSent: true, type: SSL3_RT_HEADER, firstByte: 23)
        secrets.record(isSent: false, type: SSL3_RT_INNER_CONTENT_TYPE, firstByte: 23)
        #expect(secrets.recordsSent == 2)
        #expect(secrets.recordsReceived == 1)
        // A key update makes the secrets useless.
        secrets.record(isSent: false, type: SSL3_RT_HANDSHAKE, firstByte: 24)
        #expect(!secrets.areComplete(for: .aes128GCM))
    }
}

/// Key updates that fail halfway.
struct FailedKeyUpdateTests {
    /// OpenSSL's derivations, except that one of them fails.
    private final class FailingExpander: SecretExpanding {
        private let real: HKDFExpander
        private var left: Int

        init(failingAt step: Int) throws {
            real = try #require(HKDFExpander())
            left = step
        }

        func expand(
            _ secret: UnsafeRawBufferPointer, label: StaticString, hash: RecordSuite.Hash,
            into output: Slice<UnsafeMutableRawBufferPointer>
        ) -> Bool {
            left -= 1
            return left != 0 && real.expand(secret, label: label, hash: hash, into: output)
        }
    }

    /// Whichever step fails, no record number is used twice with a key, and nothing is protected
    /// any more.
    @Test(arguments: 1...3) func aFailedUpdateProtectsNothingMore(step: Int) throws {
        let suite = RecordSuite.aes128GCM
        let expander = try #require(HKDFExpander())
        let cipher = try #require(EVP_CIPHER_CTX_new())
        defer { EVP_CIPHER_CTX_free(cipher) }
        EVP_CipherInit_ex(cipher, suite.cipher, nil, nil, nil, 1)
        var keys = TrafficKeys(secret: .init(repeating: 7), recordNumber: 41)
        let isReady = keys.derive(suite, by: expander) && keys.beginRecord(cipher)
        #expect(isReady)
        #expect(keys.recordNumber == 42)
        let updated = keys.update(suite, by: try FailingExpander(failingAt: step))
        #expect(!updated)
        #expect(keys.recordNumber == 42)
        #expect(keys.secret[0] == 7)
        let isBegun = keys.beginRecord(cipher)
        #expect(!isBegun)
        let isDerived = keys.derive(suite, by: expander)
        #expect(!isDerived, "nor by making the old keys again")
    }

    @Test func anUpdateThatSucceedsCountsFromZero() throws {
        let suite = RecordSuite.aes256GCM
        let expander = try #require(HKDFExpander())
        var keys = TrafficKeys(secret: .init(repeating: 7), recordNumber: 41)
        let isUpdated =
            try keys.derive(suite, by: expander)
            && keys.update(suite, by: FailingExpander(failingAt: 4))
        #expect(isUpdated)
        #expect(keys.recordNumber == 0)
        #expect(keys.secret[0] != 7)
    }
}
