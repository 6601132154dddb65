import CCurl
import CurlMulti
import GatewayCore
import Glibc

/// What all handles of an engine share, on its thread.
final class DeliveryTerms {
    let configuration: DeliveryEngine.Configuration
    /// The names of the fields that are kept, in lower case.
    let fieldNames: [[UInt8]]
    private let gate: DeliveryGate
    private let trusted: PinnedBytes?
    private let certificate: PinnedBytes?
    private let key: PinnedBytes?

    init(_ configuration: DeliveryEngine.Configuration, _ gate: DeliveryGate) {
        self.configuration = configuration
        self.gate = gate
        fieldNames = configuration.answerFields.prefix(DeliveryFieldValues.countMax).map {
            Array($0.lowercased().utf8)
        }
        if case .pem(let text) = configuration.trust {
            trusted = PinnedBytes(text)
        } else {
            trusted = nil
        }
        certificate = configuration.identity.map { PinnedBytes($0.certificate) }
        key = configuration.identity.map { PinnedBytes($0.key) }
    }

    /// Sets what no request changes.
    func configure(_ easy: CurlEasy, _ options: inout CurlOptions) {
        options.secure(connectDeadline: configuration.connectDeadline)
        if configuration.allowsPlainText { options.set(CURLOPT_PROTOCOLS_STR, "http,https") }
        options.set(CURLOPT_POST, 1)
        // Not the environment's: what is sent here goes where it says and nowhere else.
        options.set(CURLOPT_PROXY, "")
        options.set(CURLOPT_DNS_CACHE_TIMEOUT, 0)
        options.set(CURLOPT_MAXAGE_CONN, configuration.idleMax.seconds)
        options.set(CURLOPT_MAXLIFETIME_CONN, configuration.lifetimeMax.seconds)
        options.set(CURLOPT_TCP_KEEPALIVE, 1)
        options.set(CURLOPT_TCP_KEEPIDLE, configuration.keepAlive.seconds)
        options.set(CURLOPT_TCP_KEEPINTVL, configuration.keepAlive.seconds)
        // Answers are short, and each handle has a buffer of its own.
        options.set(CURLOPT_BUFFERSIZE, 16_384)
        switch configuration.trust {
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
            // Sound: the driver keeps this object until every handle is freed.
            options.note(
                client_curl_set_blob(easy.pointer, option, bytes.start, bytes.count))
        }
        // Sound: as before.
        let context = Unmanaged.passUnretained(self).toOpaque()
        options.set(CURLOPT_CLOSESOCKETDATA, context)
        options.note(client_curl_set_close_callback(easy.pointer, onClose))
    }

    /// A connection is open, and its first request goes out.
    func connectionOpened() {
        configuration.onConnection?(.opened)
    }

    /// Makes a socket, or `nil` when the system gives none.
    func open(family: Int32, type: Int32, protocol: Int32) -> curl_socket_t? {
        // Not left to programs that this one starts.
        let descriptor = socket(family, type | Int32(SOCK_CLOEXEC.rawValue), `protocol`)
        guard descriptor >= 0 else { return nil }
        gate.countConnections(1)
        return descriptor
    }

    fileprivate func close(_ socket: curl_socket_t) -> Int32 {
        let result = Glibc.close(socket)
        gate.countConnections(-1)
        configuration.onConnection?(.closed)
        return result
    }
}

/// Called by libcurl instead of `close(2)`.
private let onClose: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Int32 = {
    context, socket in
    guard let context else { return -1 }
    // Sound: the driver keeps the terms until every connection is closed.
    return Unmanaged<DeliveryTerms>.fromOpaque(context).takeUnretainedValue().close(socket)
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

extension Duration {
    /// Whole seconds, at least one: libcurl takes zero for "no limit".
    fileprivate var seconds: Int { max(1, Int(clamping: components.seconds)) }
}
