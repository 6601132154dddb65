import CCurl
import CurlMulti
import TimelineClient

/// libcurl's easy handle of one exchange. Used by the loop's thread only.
struct CurlHandle {
    let easy: CurlEasy
    let transfer: CurlTransfer
    private let fields: UnsafeMutablePointer<curl_slist>?

    /// `nil` when libcurl has no memory, or does not know one of the options.
    init?(_ transfer: CurlTransfer) {
        guard let easy = CurlEasy() else { return nil }
        self.easy = easy
        self.transfer = transfer
        var list: UnsafeMutablePointer<curl_slist>?
        var isComplete = true
        // An empty Expect keeps libcurl from asking for `100 Continue` and waiting.
        let lines = transfer.order.headers.map { "\($0.name): \($0.value)" } + ["Expect:"]
        for line in lines {
            if let longer = curl_slist_append(list, line) {
                list = longer
            } else {
                isComplete = false
            }
        }
        fields = list
        guard isComplete, Self.configure(easy, transfer, list) else {
            free()
            return nil
        }
    }

    /// Frees the handle, which must not be in a multi handle any more.
    func free() {
        easy.free()
        curl_slist_free_all(fields)
    }

    private static func configure(
        _ easy: CurlEasy, _ transfer: CurlTransfer, _ fields: UnsafeMutablePointer<curl_slist>?
    ) -> Bool {
        let order = transfer.order
        var options = CurlOptions(easy)
        options.secure(connectDeadline: order.connectDeadline)
        if order.isPlain { options.set(CURLOPT_PROTOCOLS_STR, "http") }
        options.set(CURLOPT_URL, order.url)
        options.set(CURLOPT_USERAGENT, "timeline-client")
        options.set(CURLOPT_HTTPHEADER, fields)
        // Sound: the loop keeps the transfer alive as long as the handle.
        options.context(Unmanaged.passUnretained(transfer).toOpaque())
        options.set(CURLOPT_WRITEFUNCTION, onBody)
        options.set(CURLOPT_HEADERFUNCTION, onHeader)
        if let total = order.totalDeadline {
            options.set(CURLOPT_TIMEOUT_MS, total.curlMilliseconds)
        }
        if order.isIsolated {
            options.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            options.set(CURLOPT_FRESH_CONNECT, 1)
            options.set(CURLOPT_FORBID_REUSE, 1)
        }
        if let caFile = order.caFile { options.trust(file: caFile) }
        if let body = order.body {
            options.note(client_curl_set_body(easy.pointer, body, curl_off_t(body.count)))
        } else if order.method == "POST" || order.method == "PUT" {
            options.note(client_curl_set_body(easy.pointer, "", 0))
        }
        if order.method != "GET" || order.body != nil {
            options.set(CURLOPT_CUSTOMREQUEST, order.method)
        }
        return options.areTaken
    }
}

/// Called by libcurl with a piece of the body.
private let onBody: CurlReading = { bytes, size, count, context in
    guard let bytes, let context else { return 0 }
    // Sound: the context is the transfer that the loop keeps alive as long as the handle, and
    // the bytes are libcurl's until this returns.
    let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
    switch transfer.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) {
    case .taken: return size * count
    case .pause: return Int(CURL_WRITEFUNC_PAUSE)
    case .abort: return 0
    }
}

/// Called by libcurl with one line of a head.
private let onHeader: CurlReading = { bytes, size, count, context in
    guard let bytes, let context else { return 0 }
    // Sound: as for the body.
    let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
    transfer.takeHeader([UInt8](UnsafeRawBufferPointer(start: bytes, count: size * count)))
    return size * count
}

extension ConnectionError {
    /// What libcurl's code means to a caller.
    init(_ code: CURLcode) {
        let kind: Code =
            switch CurlFailure(code) {
            case .unresolved: .unresolved
            case .unreachable: .unreachable
            case .timedOut: .timedOut
            case .notTrusted: .notTrusted
            case .refusedByCallback: .cancelled
            case .badRequest: .badRequest
            case .streamReset, .broken: .broken
            }
        self.init(kind, String(cString: curl_easy_strerror(code)))
    }
}
