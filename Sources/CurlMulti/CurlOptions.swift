import CCurl
import Foundation

/// Sets the options of a handle, and remembers whether libcurl took each of them.
package struct CurlOptions {
    private let easy: CurlEasy
    /// Whether libcurl took all that were set.
    package private(set) var areTaken = true

    /// Sets options of `easy`.
    package init(_ easy: CurlEasy) {
        self.easy = easy
    }

    /// What every request of this package has: `https` alone, certificates that are checked, no
    /// redirects, no signals, and nobody's proxy but one that is asked for.
    ///
    /// - Parameter connectTimeout: Longest wait for a connection, TLS included.
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

    /// Has an idle connection probed by TCP after this time, in whole seconds, and then as often: a
    /// router on the way may forget one that says nothing.
    package mutating func keepAlive(_ interval: Duration) {
        let seconds = max(1, Int(clamping: interval.components.seconds))
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_TCP_KEEPIDLE, seconds)
        set(CURLOPT_TCP_KEEPINTVL, seconds)
    }

    /// Trusts the certificates of a PEM file instead of the system's.
    package mutating func trust(file: String) {
        set(CURLOPT_CAINFO, file)
        set(CURLOPT_CAPATH, nil as String?)
    }

    /// Shows this certificate to a peer that asks for one.
    ///
    /// - Parameters:
    ///   - certificate: The certificate in PEM, and those between it and its root.
    ///   - key: Its private key in PEM, not encrypted.
    package mutating func show(certificate: [UInt8], key: [UInt8]) {
        note(
            client_curl_set_blob(easy.pointer, CURLOPT_SSLCERT_BLOB, certificate, certificate.count)
        )
        note(client_curl_set_blob(easy.pointer, CURLOPT_SSLKEY_BLOB, key, key.count))
    }

    /// Leaves no socket to programs that this one starts.
    package mutating func closeSocketsOnExec() {
        note(
            client_curl_set_open_callback(easy.pointer) { _, _, address in
                address.map { curlSocket($0.pointee) } ?? -1
            })
    }

    /// Sets a number.
    package mutating func set(_ option: CURLoption, _ value: Int) {
        note(client_curl_set_long(easy.pointer, option, value))
    }

    /// Sets a text, which libcurl copies.
    package mutating func set(_ option: CURLoption, _ text: String?) {
        note(client_curl_set_text(easy.pointer, option, text))
    }

    /// Sets a list, which must live as long as it is set.
    package mutating func set(_ option: CURLoption, _ list: UnsafeMutablePointer<curl_slist>?) {
        note(client_curl_set_list(easy.pointer, option, list))
    }

    /// Sets a pointer, which must live as long as it is set.
    package mutating func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) {
        note(client_curl_set_pointer(easy.pointer, option, value))
    }

    /// Sets a callback for parts of an answer.
    package mutating func set(_ option: CURLoption, _ callback: CurlReading) {
        note(client_curl_set_callback(easy.pointer, option, callback))
    }

    /// What ``CurlEasy/context`` and the callbacks for an answer are given.
    package mutating func context(_ context: UnsafeMutableRawPointer) {
        set(CURLOPT_PRIVATE, context)
        set(CURLOPT_WRITEDATA, context)
        set(CURLOPT_HEADERDATA, context)
    }

    /// Notes what a function of `CCurl` returned that this type has no name for.
    package mutating func note(_ code: CURLcode) {
        if code != CURLE_OK { areTaken = false }
    }
}

/// Called by libcurl with a part of an answer: bytes, the size of one, how many there are, and the
/// context. Returns how many it took.
package typealias CurlReading =
    @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int

/// Called by libcurl for a socket, with the context and what the socket is to connect to.
typealias CurlOpening =
    @convention(c) (
        UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?
    ) -> curl_socket_t

/// Makes a socket that is not left to programs which this one starts; -1 when the system gives none.
func curlSocket(_ address: curl_sockaddr) -> curl_socket_t {
    socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
}

extension Duration {
    /// For libcurl, which counts milliseconds, and takes zero for "no limit".
    package var curlMilliseconds: Int {
        let (seconds, attoseconds) = components
        let (whole, overflow) = Int(clamping: seconds).multipliedReportingOverflow(by: 1000)
        let limit = Int(Int32.max)
        guard !overflow else { return seconds < 0 ? 1 : limit }
        return min(limit, max(1, whole + Int(attoseconds / 1_000_000_000_000_000)))
    }
}
