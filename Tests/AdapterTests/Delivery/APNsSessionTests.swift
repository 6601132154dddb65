import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayDelivery

/// The bytes of a connection, exactly, and without a connection.
@Suite struct APNsSessionTests {
    /// Returns a frame as a peer sends it (RFC 9113, section 4.1).
    private static func frame(
        _ kind: UInt8, flags: UInt8 = 0, _ stream: Int, _ payload: [UInt8] = []
    ) -> [UInt8] {
        let (count, id) = (payload.count, UInt32(stream))
        return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), kind, flags]
            + number(id) + payload
    }

    private static func number(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) }
    }

    private static func field(_ name: String, _ value: String) -> [UInt8] {
        [0, UInt8(name.utf8.count)] + name.utf8 + [UInt8(value.utf8.count)] + value.utf8
    }

    private static let settings = frame(4, 0, [0, 3] + number(7))

    private static func session(_ pushes: Int) throws -> APNsSession {
        let session = try #require(
            APNsSession(APNsFields(origin: "https://api.push.apple.com:443")))
        let form = try APNsPushForm(.widgets, app: "com.mygame")
        for number in 0..<pushes {
            let digits = String(number, radix: 16)
            let token = String(repeating: "0", count: 64 - digits.count) + digits
            let push = try #require(APNsPush(token: token, form: form, registeredAt: 0))
            let isTaken = session.send(
                push, id: "123e4567-e89b-42d3-a456-426614174000", UInt64(number),
                token: (1, "abc"), deadline: 1_000, wall: 0)
            #expect(isTaken)
        }
        return session
    }

    private static func output(_ session: APNsSession) -> [UInt8] {
        var bytes: [UInt8] = []
        while let more = session.output(), !more.isEmpty { bytes += more }
        return bytes
    }

    private static func take(_ bytes: [UInt8], _ session: APNsSession) -> Bool {
        bytes.withUnsafeBytes { session.take($0) }
    }

    private static func events(_ session: APNsSession) -> [APNsSession.Event] {
        var events: [APNsSession.Event] = []
        session.takeEvents(into: &events)
        return events
    }

    @Test func `answers are told as they are`() throws {
        let session = try Self.session(4)
        #expect(Self.output(session).starts(with: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)))
        let dead =
            Self.field(":status", "410") + Self.field("apns-unique-id", "u-1")
            + Self.field("apns-id", "x")
        #expect(
            Self.take(
                Self.settings + Self.frame(1, flags: 5, 1, [0x88])
                    + Self.frame(1, flags: 4, 3, dead) + Self.frame(0, flags: 0, 3, Array("{".utf8))
                    + Self.frame(0, flags: 1, 3, Array("}".utf8))
                    + Self.frame(3, 5, Self.number(7))
                    + Self.frame(7, 0, Self.number(7) + Self.number(0)), session))
        #expect(
            Self.events(session) == [
                .allowed(7), .ended(0, .answered(status: 200)),
                .ended(1, .answered(status: 410), uniqueID: "u-1"),
                .ended(2, .failed(.notProcessed)), .retired,
            ])
        // The last stream may still be answered: the GOAWAY includes it.
        #expect(!session.isOver && session.nextDeadline == 1_000)
        session.expire(now: 1_000, isConnected: true)
        #expect(Self.events(session) == [.ended(3, .failed(.timedOut))])
    }

    @Test func `what waits for room on the connection was not sent`() throws {
        let session = try Self.session(12)
        #expect(Self.take(Self.settings, session))
        _ = Self.output(session)
        session.end(.connectionEnded)
        #expect(
            Self.events(session)
                == [.allowed(7)]
                + (0..<7).map { .ended($0, .failed(.connectionEnded)) }
                + (7..<12).map { .ended($0, nil) } + [.retired])
    }

    @Test func `of what was never heard of nothing was sent`() throws {
        let session = try Self.session(3)
        session.end(.connectionEnded)
        #expect(
            Self.events(session)
                == (0..<3).map { .ended($0, .failed(.notConnected)) } + [.retired])
    }

    /// The bodies of the pushes in a session's output, and the streams that ended.
    private struct Bodies {
        var text: [Int: String] = [:]
        var ended: Set<Int> = []
        /// The size of each DATA frame.
        var sizes: [Int] = []
        private var unread: [UInt8] = []

        /// Reads the session's current output, without the `prefaceBytes` before the first frame.
        mutating func read(_ session: APNsSession, prefaceBytes: Int = 0) {
            unread += APNsSessionTests.output(session).dropFirst(prefaceBytes)
            var place = 0
            while unread.count >= place + 9 {
                let head = unread[place..<place + 9].map { Int($0) }
                let count = head[0] << 16 | head[1] << 8 | head[2]
                guard unread.count >= place + 9 + count else { break }
                if head[3] == 0 {
                    let stream = (head[5] & 127) << 24 | head[6] << 16 | head[7] << 8 | head[8]
                    let bytes = unread[(place + 9)..<(place + 9 + count)]
                    text[stream, default: ""] += String(decoding: bytes, as: UTF8.self)
                    sizes.append(count)
                    if head[4] & 1 == 1 { ended.insert(stream) }
                }
                place += 9 + count
            }
            unread.removeFirst(place)
        }
    }

    private static let prefaceBytes = 24
    private static let body = #"{"aps":{"content-changed":true}}"#

    @Test func `a body that does not fit the stream's window waits for more of it`() throws {
        let session = try Self.session(20)
        // SETTINGS_INITIAL_WINDOW_SIZE 10.
        #expect(Self.take(Self.frame(4, 0, [0, 4] + Self.number(10)), session))
        var bodies = Bodies()
        bodies.read(session, prefaceBytes: Self.prefaceBytes)
        #expect(bodies.ended.isEmpty)
        #expect(bodies.text.count == 20)
        #expect(bodies.text.values.allSatisfy { $0 == Self.body.prefix(10) })
        for _ in 0..<3 {
            for stream in stride(from: 1, through: 39, by: 2) {
                #expect(Self.take(Self.frame(8, stream, Self.number(8)), session))
            }
            bodies.read(session)
        }
        #expect(bodies.ended.count == 20)
        #expect(bodies.text.values.allSatisfy { $0 == Self.body })
        #expect(bodies.sizes.max() == 10)
    }

    @Test func `a body that does not fit the connection's window waits for more of it`() throws {
        let count = 2_100
        let session = try Self.session(count)
        #expect(Self.take(Self.frame(4, 0, [0, 3] + Self.number(4_000)), session))
        var bodies = Bodies()
        bodies.read(session, prefaceBytes: Self.prefaceBytes)
        #expect(bodies.sizes.reduce(0, +) == 65_535)
        #expect(bodies.ended.count == 65_535 / Self.body.utf8.count)
        #expect(bodies.ended.allSatisfy { bodies.text[$0] == Self.body })
        #expect(Self.take(Self.frame(8, 0, Self.number(65_535)), session))
        bodies.read(session)
        #expect(bodies.ended.count == count)
        #expect(bodies.text.values.allSatisfy { $0 == Self.body })
    }

    private static let id = "123e4567-e89b-42d3-a456-426614174000"

    /// Whatever windows the peer grants, and whenever, each body arrives whole and ends once:
    /// contents for Live Activities, beside bodies that pushes share.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func `each content is whole whatever the windows are`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let session = try #require(
            APNsSession(APNsFields(origin: "https://api.push.apple.com:443")))
        let activity = try APNsPushForm(.liveactivity, app: "com.mygame")
        let forms = [
            activity.at(priority: 10), activity.at(priority: 5),
            try APNsPushForm(.widgets, app: "com.mygame"),
            try APNsPushForm(.background, app: "com.mygame"),
        ]
        var expected: [Int: String] = [:]
        for number in 0..<20 {
            let form = random.pick(forms)
            var push = try #require(APNsPush(token: "00ff", form: form, registeredAt: 0))
            var body = String(decoding: form.payload, as: UTF8.self)
            if form.type == .liveactivity {
                body = String(repeating: "\(number % 10)", count: 1 + random.below(4_096))
                push.payload = Array(body.utf8)
            }
            expected[2 * number + 1] = body
            let isTaken = session.send(
                push, id: Self.id, UInt64(number), token: (1, "abc"), deadline: 1_000, wall: 0)
            #expect(isTaken)
        }
        let window = UInt32(random.below(random.pick([40, 3_000])))
        #expect(Self.take(Self.frame(4, 0, [0, 4] + Self.number(window)), session))
        var bodies = Bodies()
        bodies.read(session, prefaceBytes: Self.prefaceBytes)
        for _ in 0..<random.below(200) {
            let stream = 2 * random.below(20) + 1
            let room = UInt32(1 + random.below(random.pick([12, 800])))
            #expect(Self.take(Self.frame(8, stream, Self.number(room)), session))
            if random.happens(60) { bodies.read(session) }
            #expect(bodies.text.allSatisfy { expected[$0.key]?.hasPrefix($0.value) == true })
            #expect(bodies.ended.allSatisfy { bodies.text[$0] == expected[$0] })
        }
        for stream in [0] + Array(expected.keys) {
            #expect(Self.take(Self.frame(8, stream, Self.number(100_000)), session))
        }
        bodies.read(session)
        #expect(bodies.text == expected && bodies.ended.count == 20)
    }

    @Test func `fields are made once for each priority, whatever the content`() throws {
        let fields = APNsFields(origin: "https://api.push.apple.com:443")
        let activity = try APNsPushForm(.liveactivity, app: "com.mygame")
        func places(_ bytes: Int, wall: Int64 = 5_000) throws -> [Int?] {
            try [10, 5].map { priority in
                var push = try #require(
                    APNsPush(
                        token: "00ff", form: activity.at(priority: priority), registeredAt: 0))
                push.payload = Array(repeating: 0x20, count: bytes)
                return fields.with(push, id: Self.id, token: (1, "abc"), wall: wall) {
                    Int(bitPattern: $0.baseAddress)
                }
            }
        }
        let made = try places(1)
        #expect(made[0] != made[1])
        #expect(try places(4_096) == made)
        // They name the second of their expiration.
        #expect(try places(1, wall: 6_000) != made)
    }

    /// Whatever a peer sends, each push ends once.
    @Test(arguments: 0..<400 as Range<UInt64>)
    func `bytes that make no sense do no harm`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let count = 1 + random.below(30)
        let session = try Self.session(count)
        var bytes = Self.settings
        for _ in 0..<random.below(60) {
            let stream = random.happens(90) ? 2 * random.below(count) + 1 : random.below(100)
            bytes += random.pick([
                Self.frame(1, flags: 5, stream, [0x88]),
                Self.frame(1, flags: 4, stream, Self.field(":status", "400")),
                Self.frame(1, flags: 4, stream, Self.field(":status", "9x")),
                Self.frame(1, flags: 5, stream, Self.field("apns-unique-id", "u")),
                Self.frame(0, flags: UInt8(random.below(2)), stream, Array("{}".utf8)),
                Self.frame(3, stream, Self.number(UInt32(random.below(14)))),
                Self.frame(4, 0, [0, 3] + Self.number(UInt32(random.below(40)))),
                Self.frame(6, 0, Array(repeating: 1, count: 8)),
                Self.frame(7, 0, Self.number(UInt32(stream)) + Self.number(0)),
                Self.frame(8, stream, Self.number(1)),
            ])
        }
        for _ in 0..<random.below(6) {
            bytes[random.below(bytes.count)] = UInt8(random.below(256))
        }
        var endings: [UInt64: Int] = [:]
        func note() {
            for case .ended(let flight, _, _) in Self.events(session) {
                endings[flight, default: 0] += 1
            }
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            if random.happens(50) { _ = Self.output(session) }
            let piece = Array(rest.prefix(1 + random.below(40)))
            rest = rest.dropFirst(piece.count)
            guard Self.take(piece, session) else { break }
            note()
        }
        _ = Self.output(session)
        if random.happens(30) { session.expire(now: 1_000, isConnected: random.happens(50)) }
        _ = Self.output(session)
        session.end(.connectionEnded)
        note()
        #expect(endings.count == count && endings.values.allSatisfy { $0 == 1 })
        #expect(session.nextDeadline == nil)
    }
}
