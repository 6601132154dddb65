/// What a client's records mean to a connection that only sends: its data are nobody's, its
/// alerts and key updates count (RFC 8446 sections 4.6.3 and 6).
struct PeerMessages {
    /// What has to be done about a record.
    enum Action: Equatable {
        case none
        /// Later records are protected by the next keys; `answered` asks the same of ours.
        case updateKeys(answered: Bool)
        /// The client ends the connection in order.
        case goodbye
        /// The client has ended the connection already: nothing is said any more.
        case lost
        /// The client broke the protocol.
        case refuse(Alert)
    }

    /// The beginning of a handshake message that is spread over records: at most four bytes.
    private var begun: [UInt8] = []

    /// KeyUpdate: its type and the length of its body.
    private static let keyUpdate: [UInt8] = [24, 0, 0, 1]

    /// Looks at the content of one record.
    mutating func take(_ type: UInt8, _ content: UnsafeRawBufferPointer) -> Action {
        guard let type = RecordContent(rawValue: type) else { return .refuse(.unexpectedMessage) }
        // Section 5.1: nothing comes between the parts of a message.
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
        // No other message may come from a client now, and none after a key update in its record.
        guard !content.isEmpty, begun.count + content.count <= Self.keyUpdate.count + 1 else {
            return .refuse(.unexpectedMessage)
        }
        begun.append(contentsOf: content)
        guard begun[0] == Self.keyUpdate[0] else { return .refuse(.unexpectedMessage) }
        guard begun.prefix(4).elementsEqual(Self.keyUpdate.prefix(begun.count)) else {
            return .refuse(.decodeError)
        }
        guard begun.count == Self.keyUpdate.count + 1 else { return .none }
        let request = begun[4]
        begun = []
        return request <= 1
            ? .updateKeys(answered: request == 1) : .refuse(.illegalParameter)
    }
}
