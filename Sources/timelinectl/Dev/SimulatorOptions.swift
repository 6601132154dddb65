import APNsSimulator
import ArgumentParser
import Foundation
import GatewayTLS
import WidgetModel

/// The options of every simulated push service.
struct SimulatorOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Listen address.", valueName: "host:port"))
    var listen = "127.0.0.1:2197"

    @Option(help: ArgumentHelp("The server's certificate chain, in PEM.", valueName: "file"))
    var certificate: String?

    @Option(
        name: .customLong("certificate-key"),
        help: ArgumentHelp("The certificate's private key.", valueName: "file"))
    var certificateKey: String?

    @Option(
        help: ArgumentHelp(
            "Responses for a device token, channel or subscription, in order. Repeatable.",
            valueName: "token=answer,..."))
    var answer: [String] = []

    @Option(
        help: ArgumentHelp(
            "Fault rate. Repeatable.", valueName: "percent%[=answer]"))
    var fault: [String] = []

    @Option(help: "Random seed for fault injection.")
    var seed: UInt64 = 1

    @Option(help: "Exit after this many requests.")
    var count: Int?

    @Flag(help: "Print JSON, one document per line.")
    var json = false

    var form: OutputForm { json ? .json : .text }

    func validate() throws {
        guard address != nil else { throw ValidationError("--listen must be HOST:PORT") }
        guard (certificate == nil) == (certificateKey == nil) else {
            throw ValidationError("--certificate and --certificate-key must be given together")
        }
        if let count, count < 1 { throw ValidationError("--count must be at least 1") }
    }

    private var address: (host: String, port: Int)? {
        guard let colon = listen.lastIndex(of: ":"), colon > listen.startIndex,
            let port = Int(listen[listen.index(after: colon)...]), (0...65_535).contains(port)
        else { return nil }
        let host = listen[..<colon].trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
        return (host, port)
    }

    func scripts(
        _ notation: PushBehaviourText
    ) throws -> [(token: String, behaviours: [PushBehaviour])] {
        try answer.map { text in
            // The id of a channel may end with `=`.
            let parts = text.split(separator: "=", omittingEmptySubsequences: false)
            let token = parts.dropLast().joined(separator: "=")
            guard !token.isEmpty, let answers = parts.last, !answers.isEmpty else {
                throw ValidationError("--answer must be TOKEN=ANSWER")
            }
            return (token, try answers.split(separator: ",").map { try notation.behaviour($0) })
        }
    }

    func faults(_ notation: PushBehaviourText) throws -> [PushFault] {
        let faults = try fault.flatMap { text in
            let parts = text.split(separator: "=", maxSplits: 1)
            guard let percent = parts.first, percent.hasSuffix("%"),
                let share = Double(percent.dropLast()), (0...100).contains(share)
            else { throw ValidationError("--fault must be PERCENT% or PERCENT%=ANSWER") }
            let millionths = Int((share * 10_000).rounded())
            guard parts.count == 2 else {
                return notation.mixture(share: millionths)
            }
            return [PushFault(try notation.behaviour(parts[1]), share: millionths)]
        }
        guard faults.map(\.share).reduce(0, +) <= 1_000_000 else {
            throw ValidationError("the fault rates add up to more than 100%")
        }
        return faults
    }

    /// Runs a service until it is interrupted, or has had as many requests as it may have.
    ///
    /// - Parameters:
    ///   - certificates: Returns the certificates to use when none were stated.
    ///   - introduce: Prints the address of the service, and the CA to trust if it is not known.
    func run(
        _ terms: SimulatedAPNs.Terms, _ notation: PushBehaviourText, clientCA: PEMSource? = nil,
        certificates: () throws -> DevelopmentCertificates,
        introduce: (_ url: String, _ ca: String?) -> Void
    ) async throws {
        guard let address else { throw ExitStatus.usage }
        var terms = terms
        terms.faults = try faults(notation)
        terms.seed = seed
        var ca: String?
        var settings: APNsServer.Settings
        if let certificate, let certificateKey {
            settings = .init(certificate: .file(certificate), key: .file(certificateKey))
        } else {
            let made = try certificates()
            ca = made.ca
            settings = .init(certificate: .file(made.certificate), key: .file(made.key))
        }
        settings.host = address.host
        settings.port = address.port
        settings.clientCA = clientCA
        let lines = PushLines(form: form)
        settings.onDecision = { lines.print($0, at: $1) }
        let server: APNsServer
        do {
            server = try APNsServer(terms, settings)
        } catch {
            Terminal.complain("timelinectl: \(error)")
            throw ExitStatus.usage
        }
        for script in try scripts(notation) { server.script(script.token, script.behaviours) }
        introduce("https://\(address.host):\(server.port)", ca)
        let interruption = Interruption()
        while !interruption.hasCome, count.map({ lines.count < $0 }) ?? true {
            try? await Task.sleep(for: .milliseconds(50))
        }
        // The last responses are still being sent.
        if count != nil { try? await Task.sleep(for: .milliseconds(200)) }
        let record = server.record
        await server.stop()
        PushLines.summarise(record, as: form)
    }
}
