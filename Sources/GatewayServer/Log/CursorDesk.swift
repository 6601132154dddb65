import Foundation
import GatewayCore
import Synchronization
import WidgetModel

/// Makes the cursors the gateway hands out and judges those that come back, and tells wall time.
final class CursorDesk: Sendable {
    private let seal: CursorSeal
    private let ledger: Mutex<EpochLedger>
    private let epoch: EpochID
    private let head: @Sendable () -> UInt64
    private let voidOlder: @Sendable () -> Void
    /// Cursors that knew more than the log does.
    let ahead = Counter()
    /// The last date that was told.
    private let lastDate = Mutex((second: Int64.min, text: ""))

    /// - Parameters:
    ///   - head: The last sequence on disk.
    ///   - voidOlder: Called when a cursor proved a lost tail: voids the older epochs on disk.
    init(
        seal: CursorSeal, ledger: EpochLedger, epoch: EpochID,
        head: @escaping @Sendable () -> UInt64, voidOlder: @escaping @Sendable () -> Void
    ) {
        self.seal = seal
        self.ledger = Mutex(ledger)
        self.epoch = epoch
        self.head = head
        self.voidOlder = voidOlder
    }

    /// The text of a cursor of the current epoch.
    func text(_ sequence: UInt64) -> String {
        seal.cursor(epoch, sequence).text
    }

    /// Where a client that presents `text` resumes. Unreadable text, and text that was not sealed
    /// here, counts as no cursor.
    func point(of text: String?) -> ResumePoint {
        guard let text, let cursor = Cursor(text: text), seal.isGenuine(cursor) else {
            return .everything
        }
        let (verdict, voided) = ledger.withLock { ledger in
            let verdict = ledger.verdict(on: cursor, head: head())
            return (verdict, verdict == .provesLostTail && ledger.voidOlder())
        }
        if verdict == .provesLostTail { ahead.increment() }
        if voided { voidOlder() }
        if case .holds(let sequence) = verdict { return .after(sequence) }
        return .everything
    }

    /// Seconds since 1970.
    func wallSeconds() -> Int64 { wallMilliseconds() / 1000 }

    /// Now as HTTP tells it (RFC 9110 section 5.6.7).
    func date() -> String {
        let second = wallSeconds()
        return lastDate.withLock { date in
            if date.second != second { date = (second, httpDate(second)) }
            return date.text
        }
    }

    /// Milliseconds since 1970.
    func wallMilliseconds() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }
}
