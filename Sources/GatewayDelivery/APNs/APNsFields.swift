import CNGHTTP2
import GatewayCore

/// The header fields of pushes in nghttp2's format. Fields that many pushes share are made once;
/// the two that differ for each push are inserted between them. Used by one thread.
final class APNsFields {
    private typealias Line = (name: String, value: String, flags: UInt8)

    /// The fields of a request in memory.
    private struct Block {
        let fields: UnsafeMutableBufferPointer<nghttp2_nv>
        /// The text that the fields point to.
        let text: UnsafeMutableBufferPointer<UInt8>

        func free() {
            fields.deallocate()
            text.deallocate()
        }
    }

    /// Fields that pushes share.
    private struct Common {
        let form: APNsPushForm
        let token: UInt64?
        /// The second since 1970 in which the fields are valid; 0 if they do not depend on time.
        let second: Int64
        /// All fields of a request; the two that differ for each push have no value.
        let block: Block
    }

    private static let pathStart = Array("/3/device/".utf8)
    private static let idCount = 36
    /// The most sets of shared fields kept. A pool has few forms, but each start of Live Activities
    /// has its own; beyond this number the oldest set is dropped and made again when needed.
    private static let commonMax = 16

    private let authority: String
    private var common: [Common] = []
    /// The path and the id of the current push.
    private let own: UnsafeMutableBufferPointer<UInt8>

    /// - Parameter origin: `https://` and the value of `:authority`.
    init(origin: String) {
        authority = String(origin.drop { $0 != "/" }.drop { $0 == "/" })
        // Sound: this object's from here to `deinit`, as is what `common` holds.
        own = .allocate(
            capacity: Self.pathStart.count + APNsPush.tokenDigitsMax + Self.idCount)
        _ = own.initialize(fromContentsOf: Self.pathStart)
    }

    deinit {
        own.deallocate()
        for common in common { common.block.free() }
    }

    /// Calls `body` with the fields of a push, which nghttp2 copies before `body` returns. Returns
    /// `nil` without calling it if the token is too long or the id is not 36 characters long.
    ///
    /// - Parameters:
    ///   - token: A provider token and its number.
    ///   - wall: Milliseconds since 1970.
    func with<Result>(
        _ push: APNsPush, id: String, token: (number: UInt64, text: String)?, wall: Int64,
        _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Result
    ) -> Result? {
        let (path, name) = (Self.pathStart.count + push.token.utf8.count, id.utf8.count)
        guard name == Self.idCount, path + name <= own.count else { return nil }
        if push.channel != nil {
            // Pushes to channels are rare.
            let block = Self.block(lines(push.form, push.channel, id: id, token, wall: wall))
            defer { block.free() }
            return body(block.fields)
        }
        let isDated = (push.form.lifetime ?? 0) > 0
        let second = isDated ? wall / 1_000 : 0
        let known = common.first {
            $0.second == second && $0.token == token?.number && $0.form == push.form
        }
        let fields = (known ?? make(push.form, token, second, wall: wall)).block.fields
        write(push.token, at: Self.pathStart.count)
        write(id, at: path)
        fields[Self.pathPlace].value = own.baseAddress
        fields[Self.pathPlace].valuelen = path
        fields[Self.idPlace].value = own.baseAddress.map { $0 + path }
        fields[Self.idPlace].valuelen = name
        return body(fields)
    }

    private func write(_ text: String, at start: Int) {
        var next = start
        for byte in text.utf8 {
            own[next] = byte
            next += 1
        }
    }

    private static let (pathPlace, idPlace) = (3, 4)

    private func make(
        _ form: APNsPushForm, _ token: (number: UInt64, text: String)?, _ second: Int64,
        wall: Int64
    ) -> Common {
        let made = Common(
            form: form, token: token?.number, second: second,
            block: Self.block(lines(form, nil, id: "", token, wall: wall)))
        // Fields of another second are of no more use.
        let former = common.firstIndex { $0.form == form && $0.token == token?.number }
        if let former {
            common.remove(at: former).block.free()
        } else if common.count == Self.commonMax {
            common.removeFirst().block.free()
        }
        common.append(made)
        return made
    }

    /// Returns the fields of a request. Those of a push to a device have neither path nor id.
    private func lines(
        _ form: APNsPushForm, _ channel: (id: String, bundle: String)?, id: String,
        _ token: (number: UInt64, text: String)?, wall: Int64
    ) -> [Line] {
        // Values that never repeat must not evict repeating ones from the peer's header table.
        let always = UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)
        let never = UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
        let path = channel.map { "/4/broadcasts/apps/" + $0.bundle } ?? ""
        var lines: [Line] = [
            (":method", "POST", always), (":scheme", "https", always),
            (":authority", authority, always), (":path", path, never),
            (channel == nil ? "apns-id" : "apns-request-id", id, never),
        ]
        if let channel { lines.append(("apns-channel-id", channel.id, never)) }
        // The bodies for Live Activities differ in length; their fields do not have to.
        if !form.payload.isEmpty {
            lines.append(("content-length", String(form.payload.count), always))
        }
        // The path of a push to a channel names the app.
        for field in form.fields(wall: wall) where channel == nil || field.name != "apns-topic" {
            lines.append((field.name, field.value, always))
        }
        if let token { lines.append(("authorization", "bearer \(token.text)", never)) }
        return lines
    }

    private static func block(_ lines: [Line]) -> Block {
        let count = lines.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        let text = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count)
        let fields = UnsafeMutableBufferPointer<nghttp2_nv>.allocate(capacity: lines.count)
        var next = 0
        func put(_ string: String) -> (UnsafeMutablePointer<UInt8>?, Int) {
            let start = next
            for byte in string.utf8 {
                text[next] = byte
                next += 1
            }
            return (text.baseAddress.map { $0 + start }, next - start)
        }
        for (place, line) in lines.enumerated() {
            let (name, nameCount) = put(line.name)
            let (value, valueCount) = put(line.value)
            fields.initializeElement(
                at: place,
                to: nghttp2_nv(
                    name: name, value: value, namelen: nameCount, valuelen: valueCount,
                    flags: line.flags))
        }
        return Block(fields: fields, text: text)
    }
}
