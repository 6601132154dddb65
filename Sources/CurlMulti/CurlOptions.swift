import CCurl
import Foundation

/// Sets the options of a handle, and records whether libcurl accepted all of them.
package struct CurlOptions {
    private let easy: CurlEasy
    /// Whether libcurl accepted all options set so far.
    package private(set) var areTaken = true

    /// Sets options of `easy`.
    package init(_ easy: CurlEasy) {
        self.easy = easy
    }

    /// Sets the options that all requests of this package share: only `https`, checked
    /// certificates, TLS 1.2 or later, no redirects and no signals.
    ///
    /// - Parameter connectTimeout: The longest wait for a connection, including TLS.
    package mutating func secure(connectTimeout: Duration) {
        set(CURLOPT_PROTOCOLS_STR, "https")
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        set(CURLOPT_PIPEWAIT, 1)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_SSL_VERIFYPEER, 1)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        set(CURLOPT_CONNECTTIMEOUT_MS, connectTimeout.curlMilliseconds)
    }

    /// Makes TCP probe an idle connection after this time, in whole seconds, and then in the same
    /// interval: a router on the path may forget a silent connection.
    package mutating func keepAlive(_ interval: Duration) {
        let seconds = max(1, Int(clamping: interval.components.seconds))
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_TCP_KEEPIDLE, seconds)
        set(CURLOPT_TCP_KEEPINTVL, seconds)
    }

    /// Trusts these certificates in the peer.
    package mutating func trust(_ trust: CurlTrust) {
        switch trust {
        case .system: return
        case .file(let file):
            set(CURLOPT_CAINFO, file)
            // libcurl would otherwise go on trusting the file's former contents for a day.
            set(CURLOPT_CA_CACHE_TIMEOUT, 0)
        case .certificates(let bytes):
            note(client_curl_set_blob(easy.pointer, CURLOPT_CAINFO_BLOB, bytes, bytes.count))
        }
        set(CURLOPT_CAPATH, nil as String?)
    }

    /// Presents this certificate to a peer that asks for one.
    ///
    /// - Parameters:
    ///   - certificate: The certificate in PEM, followed by the intermediate certificates up to
    ///     its root.
    ///   - key: Its private key in PEM, not encrypted.
    package mutating func show(certificate: [UInt8], key: [UInt8]) {
        note(
            client_curl_set_blob(easy.pointer, CURLOPT_SSLCERT_BLOB, certificate, certificate.count)
        )
        note(client_curl_set_blob(easy.pointer, CURLOPT_SSLKEY_BLOB, key, key.count))
    }

    /// Closes sockets in programs that this one starts.
    package mutating func closeSocketsOnExec() {
        note(
            client_curl_set_open_callback(easy.pointer) { _, _, address in
                address.map { curlSocket($0.pointee) } ?? -1
            })
    }

    package mutating func set(_ option: CURLoption, _ value: Int) {
        note(client_curl_set_long(easy.pointer, option, value))
    }

    /// Sets an option to a text, which libcurl copies.
    package mutating func set(_ option: CURLoption, _ text: String?) {
        note(client_curl_set_text(easy.pointer, option, text))
    }

    /// Sets an option to a list, which must live as long as the option is set.
    package mutating func set(_ option: CURLoption, _ list: UnsafeMutablePointer<curl_slist>?) {
        note(client_curl_set_list(easy.pointer, option, list))
    }

    /// Sets an option to a pointer, which must be valid as long as the option is set.
    package mutating func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) {
        note(client_curl_set_pointer(easy.pointer, option, value))
    }

    /// Sets a callback for parts of a response.
    package mutating func set(_ option: CURLoption, _ callback: CurlReading) {
        note(client_curl_set_callback(easy.pointer, option, callback))
    }

    /// Sets the pointer that ``CurlEasy/context`` returns and that the callbacks for a response
    /// get.
    package mutating func context(_ context: UnsafeMutableRawPointer) {
        set(CURLOPT_PRIVATE, context)
        set(CURLOPT_WRITEDATA, context)
        set(CURLOPT_HEADERDATA, context)
    }

    /// Records the result of a `CCurl` function that this type does not wrap.
    package mutating func note(_ code: CURLcode) {
        if code != CURLE_OK { areTaken = false }
    }
}

/// Called by libcurl with a part of a response: the bytes, the size of an element, the number of
/// elements, and the context. Returns the number of bytes accepted.
package typealias CurlReading =
    @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int

/// Called by libcurl to open a socket, with the context and the address to connect to.
typealias CurlOpening =
    @convention(c) (
        UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?
    ) -> curl_socket_t

/// Opens a socket that programs started by this one do not inherit; returns -1 when the system
/// provides none.
func curlSocket(_ address: curl_sockaddr) -> curl_socket_t {
    socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
}

extension Duration {
    /// The duration in libcurl's milliseconds; at least 1, because zero means "no limit".
    package var curlMilliseconds: Int {
        let (seconds, attoseconds) = components
        let (whole, overflow) = Int(clamping: seconds).multipliedReportingOverflow(by: 1000)
        let limit = Int(Int32.max)
        guard !overflow else { return seconds < 0 ? 1 : limit }
        return min(limit, max(1, whole + Int(attoseconds / 1_000_000_000_000_000)))
    }
}
