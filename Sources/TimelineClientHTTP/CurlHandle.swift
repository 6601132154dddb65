import CCurl
import TimelineClient

/// libcurl's easy handle of one exchange. Used by the loop's thread only.
struct CurlHandle {
    let easy: UnsafeMutableRawPointer
    let transfer: CurlTransfer
    private let fields: UnsafeMutablePointer<curl_slist>?

    /// `nil` when libcurl has no memory, or does not know one of the options.
    init?(_ transfer: CurlTransfer) {
        guard let easy = curl_easy_init() else { return nil }
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
        curl_easy_cleanup(easy)
        curl_slist_free_all(fields)
    }

    private static func configure(
        _ easy: UnsafeMutableRawPointer, _ transfer: CurlTransfer,
        _ fields: UnsafeMutablePointer<curl_slist>?
    ) -> Bool {
        let order = transfer.order
        // Sound: the loop keeps the transfer alive as long as the handle.
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        var codes = [
            client_curl_set_text(easy, CURLOPT_URL, order.url),
            client_curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "https"),
            client_curl_set_long(
                easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS)),
            client_curl_set_long(easy, CURLOPT_PIPEWAIT, 1),
            client_curl_set_long(easy, CURLOPT_FOLLOWLOCATION, 0),
            client_curl_set_long(easy, CURLOPT_NOSIGNAL, 1),
            client_curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 1),
            client_curl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 2),
            client_curl_set_long(
                easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            client_curl_set_long(
                easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(order.connectDeadline)),
            client_curl_set_text(easy, CURLOPT_USERAGENT, "timeline-client"),
            client_curl_set_list(easy, CURLOPT_HTTPHEADER, fields),
            client_curl_set_pointer(easy, CURLOPT_PRIVATE, context),
            client_curl_set_pointer(easy, CURLOPT_WRITEDATA, context),
            client_curl_set_pointer(easy, CURLOPT_HEADERDATA, context),
            client_curl_set_callback(easy, CURLOPT_WRITEFUNCTION, onBody),
            client_curl_set_callback(easy, CURLOPT_HEADERFUNCTION, onHeader),
        ]
        if let total = order.totalDeadline {
            codes.append(client_curl_set_long(easy, CURLOPT_TIMEOUT_MS, milliseconds(total)))
        }
        if order.isIsolated {
            codes += [
                client_curl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)),
                client_curl_set_long(easy, CURLOPT_FRESH_CONNECT, 1),
                client_curl_set_long(easy, CURLOPT_FORBID_REUSE, 1),
            ]
        }
        if let caFile = order.caFile {
            codes.append(client_curl_set_text(easy, CURLOPT_CAINFO, caFile))
            codes.append(client_curl_set_text(easy, CURLOPT_CAPATH, nil))
        }
        if let body = order.body {
            codes.append(client_curl_set_body(easy, body, curl_off_t(body.count)))
        } else if order.method == "POST" || order.method == "PUT" {
            codes.append(client_curl_set_body(easy, "", 0))
        }
        if order.method != "GET" || order.body != nil {
            codes.append(client_curl_set_text(easy, CURLOPT_CUSTOMREQUEST, order.method))
        }
        return codes.allSatisfy { $0 == CURLE_OK }
    }

    /// At least one: zero means "no limit" to libcurl.
    private static func milliseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return max(1, Int(clamping: seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}

/// Called by libcurl with a piece of the body.
private let onBody:
    @convention(c) (
        UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
    ) -> Int = { bytes, size, count, context in
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
private let onHeader:
    @convention(c) (
        UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
    ) -> Int = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        // Sound: as for the body.
        let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
        transfer.takeHeader([UInt8](UnsafeRawBufferPointer(start: bytes, count: size * count)))
        return size * count
    }

extension ConnectionError {
    /// What libcurl's code means to a caller.
    init(_ code: CURLcode) {
        let text = String(cString: curl_easy_strerror(code))
        let kind: Code =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .unresolved
            case CURLE_COULDNT_CONNECT: .unreachable
            case CURLE_OPERATION_TIMEDOUT: .timedOut
            case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION,
                CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM,
                CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED:
                .notTrusted
            case CURLE_WRITE_ERROR: .cancelled
            case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .badRequest
            default: .broken
            }
        self.init(kind, text)
    }
}
