import Foundation

/// nginx with Debian's nchan, set up for the same work with the gateway's own certificate.
///
/// Whoever makes one calls ``end()``, on errors too.
final class NchanPeer {
    private static let program = "/usr/sbin/nginx"
    private static let module = "/usr/lib/nginx/modules/ngx_nchan_module.so"
    private static let (streamPath, changePath) = ("/bench/stream", "/bench/change")
    private static let bodyBytesMax = 64 * 1024

    /// Whether nginx and the module are installed.
    static var isInstalled: Bool {
        [program, module].allSatisfy { FileManager.default.fileExists(atPath: $0) }
    }

    private let port: UInt16
    private let child: ChildProcess
    private var bodyBytes = 500

    /// Starts it, with its files in the gateway's directory.
    init(of gateway: GatewayUnderTest, cores: [Int]?) throws {
        port = try Machine.freePort()
        let directory = gateway.directory + "/nchan"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        let file = directory + "/configuration"
        try Self.configuration(directory, port: port, gateway.identity)
            .write(toFile: file, atomically: true, encoding: .utf8)
        child = try ChildProcess(
            Self.program, ["-p", directory, "-c", file, "-e", directory + "/errors"], cores: cores,
            output: directory + "/output", errors: directory + "/start")
        do {
            try waitUntilItListens()
        } catch {
            child.stop(seconds: 5)
            let said = try? String(contentsOfFile: directory + "/start", encoding: .utf8)
            throw BenchFailure("nginx did not start: \(error) \(said?.suffix(1_000) ?? "")")
        }
    }

    private func waitUntilItListens() throws {
        let end = monotonicNanoseconds() + 10_000_000_000
        while true {
            try Interruption.check()
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(descriptor) }
            let answer = sockaddr_in(loopback: 1, port: port)
                .withSockaddr { connect(descriptor, $0, $1) }
            // Its first process listens before the worker, which does the work, is there.
            if answer == 0, !ProcessFigures.children(of: child.pid).isEmpty { return }
            guard child.isRunning, monotonicNanoseconds() < end else {
                throw BenchFailure("it does not listen")
            }
            usleep(10_000)
        }
    }

    /// It, with streams that all hear of one channel.
    ///
    /// - Parameter isHTTP2: Whether streams are HTTP/2 connections.
    func target(isHTTP2: Bool = false) -> Target {
        Target(
            port: port, processes: ProcessFigures.children(of: child.pid),
            streamRequest: { _ in Request.stream(Self.streamPath, isHTTP2: isHTTP2) },
            changeRequest: { [self] in
                let body = [UInt8](repeating: UInt8(ascii: "x"), count: bodyBytes)
                return Request.bytes("POST", Self.changePath, type: "text/plain", body: body)
            }, greets: false, isHTTP2: isHTTP2)
    }

    /// Makes its messages longer by so many bytes, or shorter.
    func grow(by bytes: Double) {
        bodyBytes = min(max(1, bodyBytes + Int(bytes.rounded())), Self.bodyBytesMax)
    }

    /// Stops it.
    func end() { child.stop(seconds: 5) }

    private static func configuration(
        _ directory: String, port: UInt16, _ identity: (certificate: String, key: String)
    ) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "  \($0)_temp_path \(directory)/\($0);" }.joined(separator: "\n")
        return """
            load_module \(module);
            daemon off;
            worker_processes 1;
            pid \(directory)/pid;
            error_log \(directory)/errors warn;
            events { use epoll; multi_accept on; worker_connections 65000; }
            http {
              access_log off;
            \(temporary)
              keepalive_timeout 1h;
              keepalive_requests 100000000;
              nchan_shared_memory_size 512M;
              server {
                listen 127.0.0.1:\(port) ssl http2 backlog=4096;
                server_name localhost;
                ssl_certificate \(identity.certificate);
                ssl_certificate_key \(identity.key);
                ssl_protocols TLSv1.3;
                ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
                ssl_buffer_size 4k;
                location = \(streamPath) {
                  nchan_subscriber eventsource;
                  nchan_channel_id all;
                  nchan_subscriber_first_message newest;
                }
                location = \(changePath) {
                  nchan_publisher http;
                  nchan_channel_id all;
                  nchan_message_buffer_length 10;
                  nchan_message_timeout 60s;
                }
              }
            }
            """
    }
}
