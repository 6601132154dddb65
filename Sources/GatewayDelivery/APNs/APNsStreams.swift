/// The requests under way on one connection, found by their place and by their age.
struct APNsStreams {
    /// A request and what is known of its answer.
    struct Stream {
        /// Whose it is.
        var flight: UInt64
        /// Its number on the connection.
        var id: Int32
        /// When it ends without an answer, in monotonic milliseconds.
        var deadline: Int64
        /// 0 before the answer.
        var status = 0
        var body: [UInt8] = []
        var uniqueID: [UInt8] = []
        /// Bytes of the request's body that were handed to nghttp2.
        var bodyBytesSent = 0
        fileprivate var older = -1
        fileprivate var newer = -1

        fileprivate init(_ flight: UInt64, deadline: Int64) {
            (self.flight, id, self.deadline) = (flight, 0, deadline)
        }
    }

    private var streams: [Stream?] = []
    private var free: [Int] = []
    private var (oldest, newest): (Int, Int) = (-1, -1)

    /// How many there are.
    private(set) var count = 0

    /// The one whose deadline comes first: each is given the same time.
    var first: (place: Int, stream: Stream)? {
        guard oldest >= 0, let stream = streams[oldest] else { return nil }
        return (oldest, stream)
    }

    /// The stream at a place; nothing is known of any other.
    subscript(place: Int) -> Stream? {
        _read { yield streams.indices.contains(place) ? streams[place] : nil }
        _modify {
            guard streams.indices.contains(place) else {
                var none: Stream?
                yield &none
                return
            }
            yield &streams[place]
        }
    }

    /// The place of a stream with that number, after a look at all of them.
    func place(of id: Int32) -> Int? {
        streams.firstIndex { $0?.id == id }
    }

    /// Takes in a request.
    ///
    /// - Returns: Its place until it is removed.
    mutating func add(_ flight: UInt64, deadline: Int64) -> Int {
        var stream = Stream(flight, deadline: deadline)
        let place = free.popLast() ?? streams.endIndex
        stream.older = newest
        if newest >= 0 { streams[newest]?.newer = place } else { oldest = place }
        newest = place
        if place == streams.endIndex { streams.append(stream) } else { streams[place] = stream }
        count += 1
        return place
    }

    /// Takes a request out.
    mutating func remove(_ place: Int) -> Stream? {
        guard streams.indices.contains(place), let stream = streams[place] else { return nil }
        if stream.older >= 0 {
            streams[stream.older]?.newer = stream.newer
        } else {
            oldest = stream.newer
        }
        if stream.newer >= 0 {
            streams[stream.newer]?.older = stream.older
        } else {
            newest = stream.older
        }
        streams[place] = nil
        free.append(place)
        count -= 1
        return stream
    }
}
