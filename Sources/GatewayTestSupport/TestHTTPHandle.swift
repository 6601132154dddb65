import CCurl
import Foundation

/// One libcurl easy handle with the options that requests and streams share.
///
/// Used by one thread at a time.
final class TestHTTPHandle {
    private static let prepareOnce: Void = {
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        // OpenSSL writes to sockets that a killed server has closed.
        signal(SIGPIPE, SIG_IGN)
    }()

    // Sound: all three live exactly as long as this object.
    private let curl: OpaquePointer
    private var list: UnsafeMutablePointer<curl_slist>?
    private let words = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() {
        Self.prepareOnce
        guard let made = curl_easy_init() else { fatalError("libcurl has no handle left") }
        curl = OpaquePointer(made)
    }

    deinit {
        curl_easy_cleanup(pointer)
        curl_slist_free_all(list)
        words.deallocate()
    }

    private var pointer: UnsafeMutableRawPointer { UnsafeMutableRawPointer(curl) }

    /// Forgets the last request's options; connections stay open for the next one.
    func prepare(
        url: String, ca: String, version: TestHTTPVersion, method: String,
        headers: [(String, String)], body: [UInt8]?
    ) {
        curl_easy_reset(pointer)
        set(CURLOPT_URL, url)
        set(CURLOPT_CAINFO, ca)
        set(CURLOPT_NOSIGNAL, 1)
        words.pointee = 0
        set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(words))
        set(CURLOPT_HTTP_VERSION, version == .one ? 2 : 4)
        set(CURLOPT_TCP_NODELAY, 1)
        setSocketCallback(
            { _, socket, _ in
                // Else a daemon started later would hold its own clients' connections open.
                fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 ? 0 : 1
            }, nil)
        if let body {
            body.withUnsafeBytes {
                _ = client_curl_set_body(
                    pointer, $0.baseAddress ?? UnsafeRawPointer(curl), body.count)
            }
        } else if method == "GET" {
            set(CURLOPT_HTTPGET, 1)
        }
        if method != "GET" || body != nil { set(CURLOPT_CUSTOMREQUEST, method) }
        curl_slist_free_all(list)
        list = nil
        // libcurl would wait a second for `100 Continue`.
        for (name, value) in headers + [("Expect", "")] {
            list = curl_slist_append(list, value.isEmpty ? "\(name):" : "\(name): \(value)")
        }
        _ = client_curl_set_list(pointer, CURLOPT_HTTPHEADER, list)
    }

    func set(_ option: CURLoption, _ value: Int) {
        _ = client_curl_set_long(pointer, option, value)
    }

    func set(_ option: CURLoption, _ value: String) {
        _ = client_curl_set_text(pointer, option, value)
    }

    func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) {
        _ = client_curl_set_pointer(pointer, option, value)
    }

    typealias Callback =
        @convention(c) (
            UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?
        ) -> Int

    /// Where head lines and body bytes go; `context` must outlive ``perform()``.
    func setCallbacks(header: Callback, body: Callback, context: UnsafeMutableRawPointer) {
        _ = client_curl_set_callback(pointer, CURLOPT_HEADERFUNCTION, header)
        _ = client_curl_set_callback(pointer, CURLOPT_WRITEFUNCTION, body)
        set(CURLOPT_HEADERDATA, context)
        set(CURLOPT_WRITEDATA, context)
    }

    typealias SocketCallback =
        @convention(c) (
            UnsafeMutableRawPointer?, curl_socket_t, curlsocktype
        ) -> Int32

    /// Called with each socket before it connects.
    func setSocketCallback(_ callback: SocketCallback, _ context: UnsafeMutableRawPointer?) {
        // Sound: libcurl calls it back with the signature that the alias states.
        set(CURLOPT_SOCKOPTFUNCTION, unsafeBitCast(callback, to: UnsafeMutableRawPointer.self))
        set(CURLOPT_SOCKOPTDATA, context)
    }

    typealias CloseCallback = @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Int32

    /// Called instead of `close(2)`.
    func setCloseCallback(_ callback: CloseCallback, _ context: UnsafeMutableRawPointer?) {
        // Sound: libcurl calls it back with the signature that the alias states.
        set(
            CURLOPT_CLOSESOCKETFUNCTION, unsafeBitCast(callback, to: UnsafeMutableRawPointer.self))
        set(CURLOPT_CLOSESOCKETDATA, context)
    }

    /// What went wrong in the last ``perform()``, in libcurl's words.
    func words(for code: CURLcode) -> String {
        words.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: words)
    }

    func perform() -> CURLcode { curl_easy_perform(pointer) }
}
