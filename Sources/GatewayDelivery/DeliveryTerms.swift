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
    private let trust: DeliveryTrust
    /// By descriptor, as libcurl closes some without a word: one whose connecting was given up. The
    /// next socket has its number.
    private var sockets: Set<curl_socket_t> = []

    init(_ configuration: DeliveryEngine.Configuration, _ gate: DeliveryGate) {
        self.configuration = configuration
        self.gate = gate
        fieldNames = configuration.answerFields.prefix(DeliveryFieldValues.countMax).map {
            Array($0.lowercased().utf8)
        }
        trust = DeliveryTrust(configuration.trust, configuration.identity)
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
        options.keepAlive(configuration.keepAlive)
        // Answers are short, and each handle has a buffer of its own.
        options.set(CURLOPT_BUFFERSIZE, 16_384)
        trust.configure(easy, &options)
        // Sound: the driver keeps this object until every handle is freed.
        let context = Unmanaged.passUnretained(self).toOpaque()
        options.set(CURLOPT_CLOSESOCKETDATA, context)
        options.note(client_curl_set_close_callback(easy.pointer, onClose))
    }

    /// Makes a socket, or `nil` when the system gives none.
    func open(family: Int32, type: Int32, protocol: Int32) -> curl_socket_t? {
        guard let descriptor = deliverySocket(family, type, `protocol`) else { return nil }
        sockets.insert(descriptor)
        gate.noteConnections(sockets.count)
        return descriptor
    }

    fileprivate func close(_ socket: curl_socket_t) -> Int32 {
        sockets.remove(socket)
        gate.noteConnections(sockets.count)
        return Glibc.close(socket)
    }
}

/// Called by libcurl instead of `close(2)`.
private let onClose: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Int32 = {
    context, socket in
    guard let context else { return -1 }
    // Sound: the driver keeps the terms until every connection is closed.
    return Unmanaged<DeliveryTerms>.fromOpaque(context).takeUnretainedValue().close(socket)
}

extension Duration {
    /// Whole seconds, at least one: libcurl takes zero for "no limit".
    fileprivate var seconds: Int { max(1, Int(clamping: components.seconds)) }
}
