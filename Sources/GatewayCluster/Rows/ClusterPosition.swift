import Foundation

/// A place in the log of a cluster: the last batch that a store has. No two histories of a log have
/// the same one, since each batch has an id of its own.
package struct ClusterPosition: Sendable, Equatable {
    let log: UInt128
    /// The number of the batch.
    package let number: Int64
    /// Its random id.
    let id: UInt128

    init(log: UInt128, number: Int64, id: UInt128) {
        (self.log, self.number, self.id) = (log, number, id)
    }

    /// The place behind another batch.
    func next() -> ClusterPosition {
        ClusterPosition(log: log, number: number + 1, id: .random(in: .min ... .max))
    }

    /// Reads a position that a store recorded; `nil` for anything else.
    init?(_ data: Data) {
        guard data.count == 40 else { return nil }
        let bytes = Array(data)
        func number<T: FixedWidthInteger>(_ range: Range<Int>) -> T {
            bytes[range].reduce(0) { $0 << 8 | T(truncatingIfNeeded: $1) }
        }
        (log, self.number, id) = (number(0..<16), number(16..<24), number(24..<40))
    }

    /// The position as a store records it.
    var data: Data {
        var bytes: [UInt8] = []
        func append(_ value: some FixedWidthInteger) {
            // Sound: the bytes are copied within the closure that lends them.
            withUnsafeBytes(of: value.bigEndian) { bytes += $0 }
        }
        append(log)
        append(number)
        append(id)
        return Data(bytes)
    }
}
