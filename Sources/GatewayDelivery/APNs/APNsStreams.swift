/// The requests in flight on one connection, by place and in order of age.
struct APNsStreams {
    /// A request, and the part of its answer received so far.
    struct Stream {
        /// The number of its push.
        var flight: UInt64
        /// Its stream id on the connection.
        var id: Int32
        /// The time at which it ends without an answer, in monotonic milliseconds.
        var deadline: Int64
        /// The status of the answer; 0 before it arrives.
        var status = 0
        var body: [UInt8] = []
        var uniqueID: [UInt8] = []
        /// The request's body, if it is not one that pushes share.
        let payload: [UInt8]
        /// The number of bytes of the request's body handed to nghttp2.
        var bodyBytesSent = 0
        fileprivate var older = -1
        fileprivate var newer = -1

        fileprivate init(_ flight: UInt64, payload: [UInt8], deadline: Int64) {
            (self.flight, id, self.deadline) = (flight, 0, deadline)
            self.payload = payload
        }
    }

    private var streams: [Stream?] = []
    private var free: [Int] = []
    private var (oldest, newest): (Int, Int) = (-1, -1)

    /// The number of requests.
    private(set) var count = 0

    /// The request with the earliest deadline: the oldest, because all get the same time.
    var first: (place: Int, stream: Stream)? {
        guard oldest >= 0, let stream = streams[oldest] else { return nil }
        return (oldest, stream)
    }

    /// The request at a place; `nil` if there is none. Setting it has no effect at an unknown
    /// place.
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

    /// Returns the place of the request with this stream id; searches all requests.
    func place(of id: Int32) -> Int? {
        streams.firstIndex { $0?.id == id }
    }

    /// Adds a request. Returns its place, valid until it is removed.
    mutating func add(_ flight: UInt64, payload: [UInt8], deadline: Int64) -> Int {
        var stream = Stream(flight, payload: payload, deadline: deadline)
        let place = free.popLast() ?? streams.endIndex
        stream.older = newest
        if newest >= 0 { streams[newest]?.newer = place } else { oldest = place }
        newest = place
        if place == streams.endIndex { streams.append(stream) } else { streams[place] = stream }
        count += 1
        return place
    }

    /// Removes a request and returns it; `nil` if there is none at this place.
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
