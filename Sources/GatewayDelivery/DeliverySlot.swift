import CCurl
import CurlMulti
import Foundation
import GatewayCore

/// An easy handle and the memory of the request it carries, used for one request after another.
final class DeliverySlot {
    let easy: CurlEasy
    /// Who waits for the request under way.
    private(set) var receiver: (any DeliveryReceiver)?
    private var tag: UInt64 = 0

    private let terms: DeliveryTerms
    /// libcurl's words for a failure.
    private let words: UnsafeMutablePointer<CChar>
    /// The URL and the body of the request: libcurl does not copy the latter.
    private var memory: UnsafeMutableRawBufferPointer
    private var fields: DeliveryFields?
    private var deadline: Duration?
    private var route: UnsafeMutablePointer<curl_slist>?

    /// When the request was begun, in monotonic milliseconds.
    private var begunAt: Int64 = 0
    /// Whether libcurl handed the request to a connection.
    private(set) var isSent = false
    private var refusal: DeliveryError?

    private var status = 0
    private var values = DeliveryFieldValues()
    private var body: [UInt8] = []

    /// `nil` when libcurl has no memory, or does not know one of the options.
    init?(_ terms: DeliveryTerms) {
        guard let easy = CurlEasy() else { return nil }
        self.easy = easy
        self.terms = terms
        // Sound: both are this object's from here to `free`.
        words = .allocate(capacity: Int(CURL_ERROR_SIZE))
        words.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        memory = .allocate(byteCount: 512, alignment: 1)
        var options = CurlOptions(easy)
        terms.configure(easy, &options)
        options.set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(words))
        // Sound: the driver keeps the slot as long as the handle.
        let context = Unmanaged.passUnretained(self).toOpaque()
        options.context(context)
        options.set(CURLOPT_WRITEFUNCTION, onBody)
        options.set(CURLOPT_HEADERFUNCTION, onHeader)
        options.set(CURLOPT_OPENSOCKETDATA, context)
        options.note(client_curl_set_open_callback(easy.pointer, onOpen))
        options.set(CURLOPT_PREREQDATA, context)
        options.note(client_curl_set_request_callback(easy.pointer, onRequest))
        // libcurl sends a request again by itself when a connection that was used before ends
        // without an answer, though the peer may have acted on it. It has no option for that; this
        // value, which means something to RTSP alone, is the one it leaves such requests alone
        // with. What it still repeats are streams that the peer refused.
        options.set(CURLOPT_RTSP_REQUEST, Int(CURL_RTSPREQ_RECEIVE))
        guard options.areTaken else {
            free()
            return nil
        }
    }

    /// Frees the handle, which must not be in a multi handle any more.
    func free() {
        easy.free()
        curl_slist_free_all(route)
        words.deallocate()
        memory.deallocate()
    }

    // MARK: A request

    /// Makes the handle ready for a request.
    ///
    /// - Returns: Why it cannot be sent.
    func begin(_ order: DeliveryOrder) -> DeliveryError? {
        receiver = order.receiver
        tag = order.tag
        let request = order.request
        begunAt = DeliveryClock.system.now()
        isSent = false
        refusal = nil
        status = 0
        values.removeAll()
        body.removeAll(keepingCapacity: true)
        words.pointee = 0
        let isPlain = [request.origin, request.target].allSatisfy { text in
            text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
        let urlCount = request.origin.utf8.count + request.target.utf8.count
        guard isPlain, request.target.utf8.first == UInt8(ascii: "/"),
            urlCount <= DeliveryRequest.urlBytesMax,
            request.body.count <= DeliveryRequest.bodyBytesMax
        else {
            return DeliveryError(.badRequest, "the URL is none, or it or the body is too long")
        }
        var options = CurlOptions(easy)
        set(request, urlCount, &options)
        return options.areTaken ? nil : DeliveryError(.noMemory, "libcurl has no memory")
    }

    private func set(_ request: DeliveryRequest, _ urlCount: Int, _ options: inout CurlOptions) {
        let count = urlCount + 1 + request.body.count
        if memory.count < count || memory.count > max(count, Self.memoryKeptMax) {
            memory.deallocate()
            memory = .allocate(byteCount: max(512, count), alignment: 1)
        }
        var next = 0
        for text in [request.origin.utf8, request.target.utf8] {
            for byte in text {
                memory[next] = byte
                next += 1
            }
        }
        memory[next] = 0
        let body = UnsafeMutableRawBufferPointer(rebasing: memory[(next + 1)...])
        body.copyBytes(from: request.body)
        // Sound: the memory begins with the URL and its end, and has the body after that, until
        // another request takes the handle.
        options.set(CURLOPT_URL, memory.baseAddress)
        options.set(CURLOPT_POSTFIELDS, body.baseAddress)
        options.set(CURLOPT_POSTFIELDSIZE, request.body.count)
        if fields !== request.fields {
            fields = request.fields
            options.set(CURLOPT_HTTPHEADER, request.fields.list)
        }
        if deadline != request.deadline {
            deadline = request.deadline
            options.set(CURLOPT_TIMEOUT_MS, request.deadline.curlMilliseconds)
        }
        if let address = request.address {
            let host = address.bytes.count == 4 ? "\(address)" : "[\(address)]"
            route = curl_slist_append(nil, "::\(host):")
            if route == nil { options.note(CURLE_OUT_OF_MEMORY) }
            options.set(CURLOPT_CONNECT_TO, route)
        }
    }

    /// As much memory is kept from one request to the next, in bytes.
    private static let memoryKeptMax = 16 * 1_024

    /// Forgets the request.
    ///
    /// - Returns: Who waits for it.
    func end() -> (receiver: (any DeliveryReceiver)?, tag: UInt64) {
        if route != nil {
            var options = CurlOptions(easy)
            options.set(CURLOPT_CONNECT_TO, nil as UnsafeMutablePointer<curl_slist>?)
            curl_slist_free_all(route)
            route = nil
        }
        defer { receiver = nil }
        return (receiver, tag)
    }

    /// Whether the deadline has passed.
    func isOverdue(_ now: Int64) -> Bool {
        now - begunAt >= deadline.map { Int64($0.curlMilliseconds) } ?? .max
    }

    // MARK: Its outcome

    /// What came of the request, by libcurl's code.
    func outcome(_ code: CURLcode) -> DeliveryOutcome {
        if status >= 200 {
            return .success(
                DeliveryAnswer(
                    status: status, body: body, isWhole: code == CURLE_OK, fields: values))
        }
        if let refusal { return .failure(refusal) }
        // A stream that ends without an answer is none, whatever libcurl thinks of it.
        if code == CURLE_OK {
            return .failure(DeliveryError(.connectionEnded, "there was no answer"))
        }
        // When GOAWAY has left this stream out and no other is open, HTTP/2 has nothing left to do
        // on the connection. libcurl takes that for an error, about which it has no words.
        if code == CURLE_HTTP2, isSent, words.pointee == 0 { return .failure(.wasRefused) }
        let text = words.pointee == 0 ? curl_easy_strerror(code) : UnsafePointer(words)
        let message = text.map { String(cString: $0) } ?? "libcurl failed"
        return .failure(DeliveryError(.init(CurlFailure(code), isSent: isSent), message))
    }

    fileprivate func takeHeader(_ line: UnsafeRawBufferPointer) {
        if line.starts(with: "HTTP/".utf8) {
            // An interim answer came before, or this is the first line of all.
            values.removeAll()
            let digits = line.drop { $0 != UInt8(ascii: " ") }.dropFirst().prefix(3)
            status = digits.reduce(0) { $0 * 10 + Int($1 & 0x0F) }
            return
        }
        for (index, name) in terms.fieldNames.enumerated()
        where line.count > name.count && line[name.count] == UInt8(ascii: ":") {
            // A letter's case is one bit, which other characters of names have.
            guard zip(line, name).allSatisfy({ $0 | 0x20 == $1 }) else { continue }
            let isBlank = { (byte: UInt8) in byte <= 0x20 }
            var value = line[(name.count + 1)...].drop(while: isBlank)
            while value.last.map(isBlank) == true { value.removeLast() }
            values.take(value, at: index, max: terms.configuration.fieldBytesMax)
        }
    }

    /// Takes a piece of the body, and says how much of it.
    fileprivate func takeBody(_ piece: UnsafeRawBufferPointer) -> Int {
        let room = terms.configuration.bodyBytesMax - body.count
        body.append(contentsOf: piece.prefix(max(0, room)))
        return min(piece.count, max(0, room))
    }

    /// A connection is wanted.
    fileprivate func open(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        let refused = curl_socket_t(-1)
        guard !isSent else {
            noteRepetition()
            return refused
        }
        if let addressGuard = terms.configuration.addressGuard {
            guard let target = IPAddress(address) else { return refused }
            if let reason = addressGuard.refusal(of: target) {
                refusal = .notAllowed(target, reason)
                return refused
            }
        }
        return terms.open(
            family: address.pointee.family, type: address.pointee.socktype,
            protocol: address.pointee.protocol) ?? refused
    }

    /// The request is handed to a connection.
    ///
    /// - Returns: Whether it may be.
    fileprivate func send() -> Bool {
        guard !isSent else {
            noteRepetition()
            return false
        }
        isSent = true
        refusal = nil
        return true
    }

    /// libcurl repeats nothing but streams that were refused.
    private func noteRepetition() {
        refusal = .wasRefused
    }
}

extension DeliveryError {
    static let wasNotSent = DeliveryError(
        .notSent, "the deadline passed before a connection took the request")
    static let wasRefused = DeliveryError(.notProcessed, "the stream was refused")

    static func notAllowed(_ address: IPAddress, _ reason: AddressGuard.Refusal) -> Self {
        DeliveryError(.addressNotAllowed, "\(address) may not be asked: \(reason.rawValue)")
    }
}

extension IPAddress {
    /// The address that libcurl is about to connect to; `nil` for one of another family.
    fileprivate init?(_ address: UnsafeMutablePointer<curl_sockaddr>) {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
        // Sound: the address lies there and is `addrlen` bytes long, more than `sockaddr` has.
        let bytes = UnsafeRawBufferPointer(
            start: UnsafeRawPointer(address) + offset, count: Int(address.pointee.addrlen))
        self.init(family: address.pointee.family, socketAddress: bytes)
    }
}

/// The slot that libcurl names as its context.
private func slot(_ context: UnsafeMutableRawPointer?) -> DeliverySlot? {
    // Sound: the driver keeps the slot as long as the handle whose callbacks name it.
    context.map { Unmanaged<DeliverySlot>.fromOpaque($0).takeUnretainedValue() }
}

/// Called by libcurl with a piece of the body.
private let onBody: CurlReading = { bytes, size, count, context in
    // Sound: the bytes are libcurl's until this returns.
    slot(context)?.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
}

/// Called by libcurl with one line of a head.
private let onHeader: CurlReading = { bytes, size, count, context in
    // Sound: as for the body.
    slot(context)?.takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
    return size * count
}

/// Called by libcurl for a socket.
private let onOpen:
    @convention(c) (
        UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?
    ) -> curl_socket_t = { context, _, address in
        guard let address, let slot = slot(context) else { return -1 }
        return slot.open(address)
    }

/// Called by libcurl when a request is about to go out; anything but zero ends it.
private let onRequest:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?,
        Int32, Int32
    ) -> Int32 = { context, _, _, _, _ in slot(context)?.send() == true ? 0 : 1 }
