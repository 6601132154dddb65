import Foundation

/// The metrics on a gateway's admin port, which speaks plain HTTP.
struct AdminPage: Sendable {
    private static let bytesMax = 1024 * 1024
    private static let deadlineSeconds = 5
    private static let metric = "timeline_gateway_freshness_confirmed_seconds_bucket"

    private let host: String
    private let port: String

    /// `nil` for anything but `HOST:PORT`.
    init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), colon > text.startIndex,
            let port = UInt16(text[text.index(after: colon)...]), port > 0
        else { return nil }
        host = String(text[..<colon])
        self.port = String(port)
    }

    /// The gateway's own histogram of changes to acknowledged rebuilds; `nil` when it cannot be
    /// had. Blocks, for five seconds at most once it is connected.
    func freshness() -> FreshnessBuckets? {
        guard let text = read() else { return nil }
        var counts: [Double: Int] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix(Self.metric + "{") {
            guard line.contains("channel=\"stream\""),
                let start = line.range(of: "le=\"")?.upperBound,
                let end = line[start...].firstIndex(of: "\""),
                let count = line.split(separator: " ").last.flatMap({ Int($0) })
            else { continue }
            let bound = line[start..<end]
            // Each kind has a histogram of its own.
            let seconds = bound == "+Inf" ? .infinity : Double(bound) ?? .infinity
            counts[seconds, default: 0] += count
        }
        return counts.isEmpty ? nil : FreshnessBuckets(cumulative: counts)
    }

    private func read() -> String? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, port, &hints, &found) == 0, let address = found?.pointee else {
            return nil
        }
        defer { freeaddrinfo(found) }
        let descriptor = socket(address.ai_family, address.ai_socktype, address.ai_protocol)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var deadline = timeval(tv_sec: Self.deadlineSeconds, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &deadline, socklen_t(MemoryLayout<timeval>.size))
        let request = "GET /metrics HTTP/1.0\r\nHost: \(host)\r\nConnection: close\r\n\r\n"
        guard connect(descriptor, address.ai_addr, address.ai_addrlen) == 0,
            send(descriptor, request, request.utf8.count, Int32(MSG_NOSIGNAL))
                == request.utf8.count
        else { return nil }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = recv(descriptor, &piece, piece.count, 0)
            guard count >= 0, bytes.count + count <= Self.bytesMax else { return nil }
            if count == 0 { break }
            bytes += piece[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A histogram as Prometheus has it.
struct FreshnessBuckets: Sendable {
    /// How many samples are at most so many seconds.
    private(set) var cumulative: [Double: Int]

    /// The samples since another reading.
    func since(_ earlier: FreshnessBuckets) -> FreshnessBuckets {
        FreshnessBuckets(
            cumulative: cumulative.reduce(into: [:]) {
                $0[$1.key] = max(0, $1.value - (earlier.cumulative[$1.key] ?? 0))
            })
    }

    /// Samples.
    var count: Int { cumulative[.infinity] ?? 0 }

    /// The bucket that holds this quantile, in seconds; `nil` without samples.
    func bucket(ofQuantile share: Double) -> (above: Double, upTo: Double)? {
        let bounds = cumulative.keys.sorted()
        let wanted = max(1, Int((Double(count) * share).rounded(.up)))
        guard count > 0,
            let place = bounds.firstIndex(where: { cumulative[$0] ?? 0 >= wanted })
        else { return nil }
        return (place == 0 ? 0 : bounds[place - 1], bounds[place])
    }

    /// Whether a value lies in the bucket of this quantile or one beside it.
    func agrees(_ value: Double, onQuantile share: Double) -> Bool {
        let bounds = cumulative.keys.sorted()
        guard let bucket = bucket(ofQuantile: share),
            let theirs = bounds.firstIndex(of: bucket.upTo),
            let ours = bounds.firstIndex(where: { value <= $0 })
        else { return false }
        return abs(theirs - ours) <= 1
    }
}
