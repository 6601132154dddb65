import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport

/// The simulated APNs, as a process on cores of its own. Its owner calls ``end()``, on errors too.
final class PushServer {
    static let (keyID, team) = ("BENCHKEY00", "BENCHTEAM0")

    /// The key that authenticates its pushes.
    let key: SigningKey
    let certificates: DevelopmentCertificates
    let port: UInt16
    private let child: TestProgram

    /// Starts it with its files in `directory`, and waits until it listens.
    init(in directory: String, cores: [Int]?) throws {
        certificates = try DevelopmentCertificates.ensure(
            in: directory, now: Int64(Date().timeIntervalSince1970))
        key = try SigningKey(generating: .es256)
        try key.save(to: directory + "/key.p8")
        port = try GatewayProcess.freePort()
        let command = [
            Machine.ownProgram, "push", "--push-server", directory, "--push-port", "\(port)",
        ]
        child = try TestProgram("/usr/bin/env", Machine.command(command, on: cores))
        try waitUntilItListens()
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
            guard child.waitForExit(seconds: 0.01) == nil, monotonicNanoseconds() < end else {
                throw BenchFailure("the push server did not start: \(child.standardErrorTail)")
            }
        }
    }

    func end() { child.kill() }

    /// Runs the simulator in this process until a signal arrives.
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
