import GatewayCore
import WidgetModel

/// A judged cursor, and the era in which it was judged.
///
/// Cursors may be voided between the judgement and the response based on it. So code that acts on
/// the cursor asks for its value in the era of the response.
package struct JudgedCursor: Sendable {
    /// The position at which the client resumes.
    package let point: ResumePoint
    /// The era in which it was judged. A response based on it belongs to this era or a later one.
    package let epoch: EpochID

    package init(point: ResumePoint, epoch: EpochID) {
        self.point = point
        self.epoch = epoch
    }

    /// Returns where the client resumes in a response that belongs to `current`.
    func point(in current: EpochID) -> ResumePoint {
        current.ordinal > epoch.ordinal ? .everything : point
    }
}

/// Encodes the cursors that the gateway issues and judges those that come back.
package final class CursorCodec: Sendable {
    private let seal: CursorSeal
    private let history: EpochHistory

    package init(seal: CursorSeal, history: EpochHistory) {
        self.seal = seal
        self.history = history
    }

    /// The era of the cursors issued now.
    var epoch: EpochID { history.epoch }

    /// The number of cursors that proved that the log lost a tail.
    package var aheadCount: UInt64 { history.aheadCount }

    /// Returns the text of a cursor.
    ///
    /// - Parameter epoch: The era in which the position was found; by default the current one, for
    ///   a client that builds everything after it receives the cursor.
    package func text(_ sequence: UInt64, in epoch: EpochID? = nil) -> String {
        seal.cursor(history.identity(of: sequence, in: epoch ?? self.epoch), sequence).text
    }

    /// Returns a cursor that this product issued; `nil` for other text.
    private func genuine(_ text: String?) -> Cursor? {
        guard let cursor = text.flatMap({ Cursor(text: $0) }), seal.isGenuine(cursor) else {
            return nil
        }
        return cursor
    }

    /// Whether ``judge(_:)`` can answer for a text without asking elsewhere.
    package func isKnown(_ text: String?) -> Bool {
        genuine(text).map { history.isKnown($0) } ?? true
    }

    /// Waits until ``judge(_:)`` can judge the cursor in a text.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if no other gateway can tell now.
    package func find(_ text: String?) async throws {
        if let cursor = genuine(text) { try await history.find(cursor) }
    }

    /// Returns where a client that presents `text` resumes. Unreadable text, and text that was not
    /// sealed here, count as no cursor.
    package func judge(_ text: String?) -> JudgedCursor {
        guard let cursor = genuine(text) else {
            return JudgedCursor(point: .everything, epoch: epoch)
        }
        return history.judge(cursor)
    }
}
