/// What came of a request: an answer, or why there is none.
package typealias DeliveryOutcome = Result<DeliveryAnswer, DeliveryError>

/// What a peer answered. It counts as an answer once its status is here, whatever happens then.
package struct DeliveryAnswer: Sendable {
    /// The status, 200...999.
    package let status: Int
    /// The body, as much of it as came and ``DeliveryEngine/Configuration/bodyBytesMax`` allows.
    package let body: [UInt8]
    /// Whether that is all of it.
    package let isWhole: Bool
    private let fields: DeliveryFieldValues

    init(status: Int, body: [UInt8], isWhole: Bool, fields: DeliveryFieldValues) {
        self.status = status
        self.body = body
        self.isWhole = isWhole
        self.fields = fields
    }

    /// The value of a header field; `nil` when the answer did not have it, or it was longer than
    /// ``DeliveryEngine/Configuration/fieldBytesMax``.
    ///
    /// - Parameter index: Its place in ``DeliveryEngine/Configuration/answerFields``.
    package func field(_ index: Int) -> String? {
        fields[index]
    }
}

/// The values of a few header fields in one piece of memory, which is used again and again.
struct DeliveryFieldValues: Sendable {
    /// How many fields there may be.
    static let countMax = 4

    private var bytes: [UInt8] = []
    private var starts = SIMD4<UInt16>()
    private var ends = SIMD4<UInt16>()

    /// Takes a value, unless there is one already or it does not fit.
    mutating func take(_ value: Slice<UnsafeRawBufferPointer>, at index: Int, max bytesMax: Int) {
        guard (0..<Self.countMax).contains(index), ends[index] == 0, !value.isEmpty,
            value.count <= bytesMax, let end = UInt16(exactly: bytes.count + value.count)
        else { return }
        starts[index] = UInt16(truncatingIfNeeded: bytes.count)
        bytes.append(contentsOf: value)
        ends[index] = end
    }

    mutating func removeAll() {
        guard ends != SIMD4() else { return }
        bytes.removeAll(keepingCapacity: true)
        starts = SIMD4()
        ends = SIMD4()
    }

    subscript(index: Int) -> String? {
        guard (0..<Self.countMax).contains(index), ends[index] > 0 else { return nil }
        return String(decoding: bytes[Int(starts[index])..<Int(ends[index])], as: UTF8.self)
    }
}
