import CCurl
import Foundation

/// One request while libcurl performs it: its easy handle, and the data that libcurl reads and
/// writes. Used by the client's thread only.
final class Transfer {
    let easy: CurlEasy
    let call: CurlCall

    private let configuration: CurlClient.Configuration
    private let sockets: ClientSockets
    /// libcurl's message for a failure.
    private let message: UnsafeMutablePointer<CChar>
    private var route: UnsafeMutablePointer<curl_slist>?

    private let begunAt = ContinuousClock.now
    private var heardAt = ContinuousClock.now
    /// Whether libcurl has handed the request to a connection.
    private var isSent = false
    private var isPaused = false
    private var refusal: CurlError?
    private var parser = ResponseHeadParser()

    init(
        _ call: CurlCall, easy: CurlEasy, configuration: CurlClient.Configuration,
        sockets: ClientSockets
    ) {
        (self.call, self.easy) = (call, easy)
        (self.configuration, self.sockets) = (configuration, sockets)
        // Sound: this object's from here to `deinit`, which comes after the handle's last use.
        message = .allocate(capacity: Int(CURL_ERROR_SIZE))
        message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_slist_free_all(route)
        message.deallocate()
    }

    // MARK: The request

    /// Prepares the handle, which must have no options yet. Returns the reason why the request
    /// cannot be sent; `nil` if it can.
    func configure() -> CurlError? {
        let request = call.request
        let url = request.origin + request.target
        guard url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            request.target.utf8.first == UInt8(ascii: "/"),
            url.utf8.count <= configuration.urlBytesMax,
            request.body?.count ?? 0 <= configuration.bodyBytesMax
        else {
            return CurlError(.badRequest, "the URL is invalid, or it or the body is too long")
        }
        var options = CurlOptions(easy)
        setConnection(&options)
        setCallbacks(&options)
        setRequest(request, url, &options)
        return options.areTaken ? nil : CurlError(.noMemory, "libcurl has no memory")
    }

    private func setConnection(_ options: inout CurlOptions) {
        options.secure(connectTimeout: configuration.connectTimeout)
        if configuration.allowsPlainText { options.set(CURLOPT_PROTOCOLS_STR, "http,https") }
        if !configuration.speaksHTTP2 {
            options.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        }
        if !configuration.waitsToShare { options.set(CURLOPT_PIPEWAIT, 0) }
        // A proxy's own response is not the peer's.
        options.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        if !configuration.usesEnvironmentProxy { options.set(CURLOPT_PROXY, "") }
        if !configuration.keepsAddresses { options.set(CURLOPT_DNS_CACHE_TIMEOUT, 0) }
        options.set(CURLOPT_MAXAGE_CONN, configuration.idleMax.wholeSeconds)
        options.set(CURLOPT_MAXLIFETIME_CONN, configuration.lifetimeMax.wholeSeconds)
        options.keepAlive(configuration.keepAlive)
        options.trust(configuration.trust)
        if let identity = configuration.identity {
            options.show(certificate: identity.certificate, key: identity.key)
        }
        sockets.configure(easy, &options)
        // When a reused connection ends without a response, libcurl resends the request, although
        // the peer may have acted on it. No option prevents that, but libcurl does not resend
        // requests with this value, which otherwise matters to RTSP only. It still repeats streams
        // that the peer refused.
        if !configuration.repeatsRequests {
            options.set(CURLOPT_RTSP_REQUEST, Int(CURL_RTSPREQ_RECEIVE))
        }
    }

    private func setCallbacks(_ options: inout CurlOptions) {
        // Sound: the driver keeps the transfer as long as its handle is in use.
        let context = Unmanaged.passUnretained(self).toOpaque()
        options.context(context)
        options.set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(message))
        options.set(CURLOPT_WRITEFUNCTION, onBody)
        options.set(CURLOPT_HEADERFUNCTION, onHeader)
        options.set(CURLOPT_OPENSOCKETDATA, context)
        options.note(client_curl_set_open_callback(easy.pointer, onOpen))
        options.set(CURLOPT_PREREQDATA, context)
        options.note(client_curl_set_request_callback(easy.pointer, onRequest))
    }

    private func setRequest(_ request: CurlRequest, _ url: String, _ options: inout CurlOptions) {
        options.set(CURLOPT_URL, url)
        options.set(CURLOPT_HTTPHEADER, request.fields.list)
        if let body = request.body {
            options.note(client_curl_set_body(easy.pointer, body, curl_off_t(body.count)))
        } else if request.method == "POST" || request.method == "PUT" {
            options.note(client_curl_set_body(easy.pointer, "", 0))
        }
        if request.method != "GET" || request.body != nil {
            options.set(CURLOPT_CUSTOMREQUEST, request.method)
        }
        if let timeout = request.timeout {
            options.set(CURLOPT_TIMEOUT_MS, timeout.curlMilliseconds)
        }
        if request.isIsolated {
            options.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            options.set(CURLOPT_FRESH_CONNECT, 1)
            options.set(CURLOPT_FORBID_REUSE, 1)
        }
        if let address = request.address {
            route = curl_slist_append(nil, "::\(address):")
            if route == nil { options.note(CURLE_OUT_OF_MEMORY) }
            options.set(CURLOPT_CONNECT_TO, route)
        }
    }

    /// The time at which the client gives up the transfer, and the reason.
    ///
    /// libcurl does not apply its timeout to a request that waits for a connection to end. After a
    /// GOAWAY, a connection ends with its last stream, even if its peer is silent. Where libcurl
    /// applies the timeout, it does so earlier than this.
    var expiry: (at: ContinuousClock.Instant, reason: CurlError)? {
        if !isSent, let timeout = call.request.timeout {
            return (begunAt + timeout + .milliseconds(250), .isNotSent)
        }
        guard let silence = call.request.silenceTimeout, !isPaused else { return nil }
        return (heardAt + silence, .isSilent)
    }

    /// Offers the receiver again the piece that it did not accept.
    func resume() {
        isPaused = false
        heardAt = .now
        curl_easy_pause(easy.pointer, CURLPAUSE_CONT)
    }

    // MARK: The response

    /// The head of the response, if its status arrived.
    var head: CurlHead? { parser.head.status >= 200 ? parser.head : nil }

    /// Returns the failure that libcurl's code stands for; `nil` when the response is complete.
    func failure(_ code: CURLcode) -> CurlError? {
        if let refusal { return refusal }
        if code == CURLE_OK {
            // A stream that ends without a status is a failure, even if libcurl reports success.
            return head != nil ? nil : CurlError(.connectionEnded, "there was no response")
        }
        // When a GOAWAY excludes this stream and no other stream is open, HTTP/2 has nothing left
        // to do on the connection. libcurl reports that as an error without a message.
        if code == CURLE_HTTP2, isSent, message.pointee == 0 { return .isRefused }
        let words = message.pointee == 0 ? curl_easy_strerror(code) : UnsafePointer(message)
        var text = words.map { String(cString: $0) } ?? "libcurl failed"
        if code == CURLE_COULDNT_CONNECT, let reason = systemError, let general = Self.text(code) {
            text = text.replacing(general, with: reason)
        }
        return CurlError(.init(code, isSent: isSent), text)
    }

    /// The system's reason for a failed connection, such as "Connection refused".
    private var systemError: String? {
        let number = client_curl_get_system_error(easy.pointer)
        return number == 0 ? nil : String(cString: strerror(Int32(clamping: number)))
    }

    private static func text(_ code: CURLcode) -> String? {
        curl_easy_strerror(code).map { String(cString: $0) }
    }

    fileprivate func receive(line: UnsafeRawBufferPointer) {
        heardAt = .now
        if parser.read(line) { call.receiver.received(parser.head) }
    }

    /// - Returns: The number of bytes accepted, as libcurl's write callback returns it.
    fileprivate func receive(piece: UnsafeRawBufferPointer) -> Int {
        heardAt = .now
        guard let count = call.receiver.received(piece) else {
            isPaused = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        if count < piece.count {
            refusal = CurlError(.tooLarge, "the response is too long")
        }
        return count
    }

    /// Opens a socket for a new connection, if that is allowed.
    fileprivate func open(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        let refused = curl_socket_t(-1)
        guard mayBeSent else { return refused }
        if let addressRefusal = configuration.addressRefusal {
            guard let bytes = Self.bytes(of: address) else { return refused }
            if let reason = addressRefusal(bytes) {
                refusal = CurlError(.addressNotAllowed, reason)
                return refused
            }
        }
        return sockets.open(address.pointee)
    }

    /// Records that the request is handed to a connection. Returns whether it may be sent.
    fileprivate func send() -> Bool {
        guard mayBeSent else { return false }
        isSent = true
        refusal = nil
        return true
    }

    /// Whether the request may be sent: false if libcurl is about to repeat a stream that was
    /// refused.
    private var mayBeSent: Bool {
        guard isSent, !configuration.repeatsRequests else { return true }
        refusal = .isRefused
        return false
    }

    private static func bytes(of address: UnsafeMutablePointer<curl_sockaddr>) -> [UInt8]? {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
        // Sound: the address starts at this offset and is `addrlen` bytes long, more than
        // `sockaddr` has.
        let bytes = UnsafeRawBufferPointer(
            start: UnsafeRawPointer(address) + offset, count: Int(address.pointee.addrlen))
        return addressBytes(family: address.pointee.family, bytes)
    }
}

/// Returns the 4 or 16 bytes of the address in a `sockaddr_in` or `sockaddr_in6`; `nil` for another
/// family.
package func addressBytes(family: Int32, _ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
    let range = family == AF_INET ? 4..<8 : 8..<24
    guard family == AF_INET || family == AF_INET6, bytes.count >= range.upperBound else {
        return nil
    }
    return Array(bytes[range])
}

extension Duration {
    /// The duration in whole seconds, at least one: for libcurl zero means "no limit".
    fileprivate var wholeSeconds: Int { max(1, Int(clamping: components.seconds)) }
}

/// Returns the transfer that libcurl's context points to.
private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
    // Sound: the driver keeps the transfer as long as the handle whose callbacks name it.
    context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
}

/// Called by libcurl with a piece of the body.
private let onBody: CurlReading = { bytes, size, count, context in
    // Sound: the bytes are libcurl's until this returns.
    transfer(context)?.receive(piece: UnsafeRawBufferPointer(start: bytes, count: size * count))
        ?? 0
}

/// Called by libcurl with one line of a head.
private let onHeader: CurlReading = { bytes, size, count, context in
    // Sound: as for the body.
    transfer(context)?.receive(line: UnsafeRawBufferPointer(start: bytes, count: size * count))
    return size * count
}

/// Called by libcurl to open a socket.
private let onOpen: CurlOpening = { context, _, address in
    guard let address, let transfer = transfer(context) else { return -1 }
    return transfer.open(address)
}

/// Called by libcurl just before a request is sent; a result other than zero ends the request.
private let onRequest:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?,
        Int32, Int32
    ) -> Int32 = { context, _, _, _, _ in transfer(context)?.send() == true ? 0 : 1 }
