/// Interprets a client's records on a connection that only sends: application data is ignored,
/// alerts and key updates are acted on (RFC 8446 sections 4.6.3 and 6).
struct PeerMessages {
    /// The reaction to one record.
    enum Action: Equatable {
        case none
        /// Later records are protected by the next keys; `answered` means that the client asks for
        /// an update of our keys too.
        case updateKeys(answered: Bool)
        /// The client ends the connection with `close_notify`.
        case goodbye
        /// The client has already ended the connection with an error; nothing more is sent.
        case lost
        /// The client broke the protocol.
        case refuse(Alert)
    }

    /// The beginning of a handshake message that is split across records: at most four bytes.
    private var begun: [UInt8] = []

    /// The first four bytes of a KeyUpdate: its type and the length of its body.
    private static let keyUpdate: [UInt8] = [24, 0, 0, 1]

    /// Reads the content of one record and returns the reaction to it.
    mutating func take(_ type: UInt8, _ content: UnsafeRawBufferPointer) -> Action {
        guard let type = RecordContent(rawValue: type) else { return .refuse(.unexpectedMessage) }
        // Section 5.1: no other record may come between the parts of a message.
        guard begun.isEmpty || type == .handshake else { return .refuse(.unexpectedMessage) }
        switch type {
        case .applicationData: return .none
        case .alert: return alert(content)
        case .handshake: return handshake(content)
        }
    }

    private func alert(_ content: UnsafeRawBufferPointer) -> Action {
        // Section 5.4: empty alerts are refused as unexpected.
        guard !content.isEmpty else { return .refuse(.unexpectedMessage) }
        guard content.count == 2 else { return .refuse(.decodeError) }
        let userCanceled: UInt8 = 90
        switch content[1] {
        case Alert.closeNotify.rawValue: return .goodbye
        case userCanceled: return .none
        default: return .lost
        }
    }

    private mutating func handshake(_ content: UnsafeRawBufferPointer) -> Action {
        guard !content.isEmpty else { return .refuse(.unexpectedMessage) }
        let room = Self.keyUpdate.count + 1 - begun.count
        begun.append(contentsOf: content.prefix(room))
        // A client may send no other message now, and nothing after a key update in the same
        // record.
        guard begun[0] == Self.keyUpdate[0] else { return .refuse(.unexpectedMessage) }
        guard begun.prefix(4).elementsEqual(Self.keyUpdate.prefix(begun.count)) else {
            return .refuse(.decodeError)
        }
        guard content.count <= room else { return .refuse(.unexpectedMessage) }
        guard begun.count == Self.keyUpdate.count + 1 else { return .none }
        let request = begun[4]
        begun = []
        return request <= 1
            ? .updateKeys(answered: request == 1) : .refuse(.illegalParameter)
    }
}
