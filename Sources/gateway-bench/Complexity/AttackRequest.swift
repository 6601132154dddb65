import Glibc

/// A request that a shape sends again and again.
struct AttackRequest {
    /// Stands in a request for a number that is different each time it is sent.
    static let numberMark = "@@@@@@@@"
    private static let numberBytes = 8

    let route: Route
    /// The statuses that show that the gateway read all of the document.
    let reaching: Set<Int>
    /// The number of requests in it: several are sent without waiting for an answer between.
    let count: Int
    private let template: [UInt8]
    private let numberPlaces: [Int]

    /// A request of these bytes, in which each ``numberMark`` is to be a number.
    init(_ route: Route, reaching: Set<Int>, bytes: [UInt8], count: Int = 1) {
        (self.route, self.reaching, self.count) = (route, reaching, count)
        template = [[UInt8]](repeating: bytes, count: count).flatMap { $0 }
        numberPlaces = Self.places(in: template)
    }

    /// Its bytes with a number of its own; a request of several has one for each.
    func bytes(number: Int) -> [UInt8] {
        var bytes = template
        let numbersEach = max(1, numberPlaces.count / count)
        for (index, place) in numberPlaces.enumerated() {
            var rest = number * count + index / numbersEach
            for digit in stride(from: place + Self.numberBytes - 1, through: place, by: -1) {
                bytes[digit] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            }
        }
        return bytes
    }

    private static func places(in bytes: [UInt8]) -> [Int] {
        let mark = Array(numberMark.utf8)
        var places: [Int] = []
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            var start = 0
            // Sound: the search ends with the buffer, and the pointers stay inside the closure.
            while start < buffer.count,
                let found = memchr(base + start, Int32(mark[0]), buffer.count - start)
            {
                let place = UnsafeRawPointer(found) - base
                let isMark = buffer[place...].starts(with: mark)
                if isMark { places.append(place) }
                start = place + (isMark ? mark.count : 1)
            }
        }
        return places
    }
}
