import CCurl
import CurlMulti
import Glibc

/// Whom handles trust, and what they show, in the form in which libcurl reads it. Must live as long
/// as a handle that it configured.
final class DeliveryTrust {
    private let trust: DeliveryEngine.Configuration.Trust
    private let trusted: PinnedBytes?
    private let certificate: PinnedBytes?
    private let key: PinnedBytes?

    init(
        _ trust: DeliveryEngine.Configuration.Trust,
        _ identity: DeliveryEngine.Configuration.Identity?
    ) {
        self.trust = trust
        if case .pem(let text) = trust { trusted = PinnedBytes(text) } else { trusted = nil }
        certificate = identity.map { PinnedBytes($0.certificate) }
        key = identity.map { PinnedBytes($0.key) }
    }

    func configure(_ easy: CurlEasy, _ options: inout CurlOptions) {
        switch trust {
        case .system: break
        case .file(let path): options.trust(file: path)
        case .pem:
            options.set(CURLOPT_CAINFO, nil as String?)
            options.set(CURLOPT_CAPATH, nil as String?)
        }
        for (option, bytes) in [
            (CURLOPT_CAINFO_BLOB, trusted), (CURLOPT_SSLCERT_BLOB, certificate),
            (CURLOPT_SSLKEY_BLOB, key),
        ] {
            guard let bytes else { continue }
            // Sound: whoever has the handle keeps this object until it is freed.
            options.note(
                client_curl_set_blob(easy.pointer, option, bytes.start, bytes.count))
        }
    }
}

/// A socket that is not left to programs which this one starts; `nil` when the system gives none.
func deliverySocket(_ family: Int32, _ type: Int32, _ protocol: Int32) -> curl_socket_t? {
    let descriptor = socket(family, type | Int32(SOCK_CLOEXEC.rawValue), `protocol`)
    return descriptor >= 0 ? descriptor : nil
}

/// Bytes that stay where they are.
private final class PinnedBytes {
    let start: UnsafeMutableRawPointer
    let count: Int

    init(_ bytes: [UInt8]) {
        // Sound: the memory is this object's from here to `deinit`, and as long as the bytes.
        start = .allocate(byteCount: max(1, bytes.count), alignment: 1)
        count = bytes.count
        UnsafeMutableRawBufferPointer(start: start, count: count).copyBytes(from: bytes)
    }

    deinit {
        start.deallocate()
    }
}
