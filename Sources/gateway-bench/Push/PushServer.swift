import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS

/// What stands for APNs, as a process on cores of its own.
///
/// Whoever makes one calls ``end()``, on errors too.
final class PushServer {
    /// Which program it is.
    enum Kind: CaseIterable {
        /// The simulated APNs of this repository.
        case simulator
        /// nghttp2's server, which answers anything.
        case nghttpd

        /// As the report names it.
        var name: String {
            switch self {
            case .simulator: "simulator"
            case .nghttpd: "nghttpd"
            }
        }

        /// Whether it can be started here.
        var isInstalled: Bool {
            self == .simulator || FileManager.default.isExecutableFile(atPath: PushServer.nghttpd)
        }
    }

    /// Names of the key and its team.
    static let (keyID, team) = ("BENCHKEY00", "BENCHTEAM0")
    private static let nghttpd = "/usr/sbin/nghttpd"
    private static let streamsMax = 1_000

    /// What its pushes are authenticated with.
    let key: SigningKey
    /// Its certificates.
    let certificates: DevelopmentCertificates
    /// Where it listens.
    let port: UInt16
    private let child: ChildProcess

    /// Starts it with its files in `directory`, and waits until it listens.
    init(_ kind: Kind, in directory: String, cores: [Int]?) throws {
        certificates = try DevelopmentCertificates.ensure(
            in: directory, now: Int64(Date().timeIntervalSince1970))
        let keyPath = directory + "/key.p8"
        if FileManager.default.fileExists(atPath: keyPath) {
            key = try SigningKey(contentsOf: keyPath)
        } else {
            key = try SigningKey(generating: .es256)
            try key.save(to: keyPath)
        }
        port = try Machine.freePort()
        let (program, arguments): (String, [String]) =
            switch kind {
            case .simulator:
                ("/proc/self/exe", ["push", "--push-server", directory, "--push-port", "\(port)"])
            case .nghttpd:
                (
                    Self.nghttpd,
                    [
                        "--echo-upload", "--address=127.0.0.1",
                        "--max-concurrent-streams=\(Self.streamsMax)", "\(port)", certificates.key,
                        certificates.certificate,
                    ]
                )
            }
        let errors = "\(directory)/\(kind.name)-errors"
        child = try ChildProcess(
            program, arguments, cores: cores, output: "\(directory)/\(kind.name)-output",
            errors: errors)
        do {
            try waitUntilItListens()
        } catch {
            child.stop(seconds: 5)
            let said = try? String(contentsOfFile: errors, encoding: .utf8)
            throw BenchFailure("\(kind.name) did not start: \(error) \(said?.suffix(1_000) ?? "")")
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
            if answer == 0 { return }
            guard child.isRunning, monotonicNanoseconds() < end else {
                throw BenchFailure("it does not listen")
            }
            usleep(10_000)
        }
    }

    /// Stops it.
    func end() { child.stop(seconds: 5) }

    /// Is the simulator, in this process: serves until a signal arrives.
    static func serve(_ directory: String, port: Int) throws {
        let certificates = try DevelopmentCertificates.ensure(
            in: directory, now: Int64(Date().timeIntervalSince1970))
        let key = try SigningKey(contentsOf: directory + "/key.p8")
        var terms = SimulatedAPNs.Terms()
        terms.environment = .production
        terms.keys = [try ProviderKey(id: keyID, team: team, key: key.publicKey)]
        var settings = APNsServer.Settings(
            certificate: .file(certificates.certificate), key: .file(certificates.key))
        settings.port = port
        let server = try APNsServer(terms, settings)
        try withExtendedLifetime(server) {
            while true {
                try Interruption.check()
                usleep(50_000)
            }
        }
    }
}
