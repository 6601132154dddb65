import APNsSimulator
import ArgumentParser
import Foundation
import GatewayTLS
import Synchronization
import WidgetModel

struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Simulate Apple's push service for development.",
        subcommands: [APNsCommand.self, APNsTokenCommand.self])
}

struct APNsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apns",
        abstract: "Run a local push service that behaves like APNs and delivers nothing.",
        discussion: """
            Speaks HTTP/2 over TLS and checks pushes against Apple's rules: provider token, topic, \
            push type, priority, expiration, ids, payload and concurrent requests. Prints a line \
            per push, with shortened device tokens. Creates certificates for localhost and a team \
            key in --data if they are missing, and prints the gateway configuration to use at \
            startup. On exit (Ctrl-C) it prints how many pushes it accepted and which of Apple's \
            rules were broken. Broadcast channels of Live Activities are managed at the same \
            address; Apple has another host for that.

            Faults are injected by device token or channel (--answer) or at random (--fault): \
            \(PushBehaviourText.help).

            Examples:
              timelinectl dev apns
              timelinectl dev apns --answer 0a0b0c=410 --answer ff00=503,503,200
              timelinectl dev apns --fault 5% --seed 7 --json
              timelinectl dev apns --fault 1%=TooManyRequests --fault 0.1%=cut
              timelinectl dev apns --provider-key AuthKey_ABC.p8 --key-id ABC --team DEF
            """)

    @OptionGroup var development: DevelopmentAPNs

    @Option(help: ArgumentHelp("Listen address.", valueName: "host:port"))
    var listen = "127.0.0.1:2197"

    @Option(help: ArgumentHelp("The server's certificate chain, in PEM.", valueName: "file"))
    var certificate: String?

    @Option(
        name: .customLong("certificate-key"),
        help: ArgumentHelp("The certificate's private key.", valueName: "file"))
    var certificateKey: String?

    @Option(
        name: .customLong("client-ca"),
        help: ArgumentHelp(
            "Accept client certificates of this CA instead of provider tokens.", valueName: "file"))
    var clientCA: String?

    @Flag(help: "Simulate the production environment instead of the sandbox.")
    var production = false

    @Option(help: ArgumentHelp("Accept pushes for this app only. Repeatable.", valueName: "id"))
    var app: [String] = []

    @Option(
        help: ArgumentHelp(
            "Responses for a device token or channel, in order. Repeatable.",
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

    private var form: OutputForm { json ? .json : .text }

    func validate() throws {
        guard address != nil else { throw ValidationError("--listen must be HOST:PORT") }
        guard (certificate == nil) == (certificateKey == nil) else {
            throw ValidationError("--certificate and --certificate-key must be given together")
        }
        if let count, count < 1 { throw ValidationError("--count must be at least 1") }
        _ = try scripts(wall: 0)
        _ = try faults(wall: 0)
    }

    private var address: (host: String, port: Int)? {
        guard let colon = listen.lastIndex(of: ":"), colon > listen.startIndex,
            let port = Int(listen[listen.index(after: colon)...]), (0...65_535).contains(port)
        else { return nil }
        let host = listen[..<colon].trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
        return (host, port)
    }

    private func scripts(wall: Int64) throws -> [(token: String, behaviours: [PushBehaviour])] {
        try answer.map { text in
            // The id of a channel may end with `=`.
            let parts = text.split(separator: "=", omittingEmptySubsequences: false)
            let token = parts.dropLast().joined(separator: "=")
            guard !token.isEmpty, let answers = parts.last, !answers.isEmpty else {
                throw ValidationError("--answer must be TOKEN=ANSWER")
            }
            return (token, try answers.split(separator: ",").map { try behaviour($0, wall: wall) })
        }
    }

    private func faults(wall: Int64) throws -> [PushFault] {
        let faults = try fault.flatMap { text in
            let parts = text.split(separator: "=", maxSplits: 1)
            guard let percent = parts.first, percent.hasSuffix("%"),
                let share = Double(percent.dropLast()), (0...100).contains(share)
            else { throw ValidationError("--fault must be PERCENT% or PERCENT%=ANSWER") }
            let millionths = Int((share * 10_000).rounded())
            guard parts.count == 2 else {
                return PushBehaviourText.mixture(share: millionths, wall: wall)
            }
            return [PushFault(try behaviour(parts[1], wall: wall), share: millionths)]
        }
        guard faults.map(\.share).reduce(0, +) <= 1_000_000 else {
            throw ValidationError("the fault rates add up to more than 100%")
        }
        return faults
    }

    private func behaviour(_ text: Substring, wall: Int64) throws -> PushBehaviour {
        guard let behaviour = PushBehaviourText.parse(text, wall: wall) else {
            throw ValidationError("`\(text)` is not \(PushBehaviourText.help)")
        }
        return behaviour
    }

    func run() async throws {
        guard let address else { throw ExitStatus.usage }
        let wall = APNsServer.time().wall
        var terms = SimulatedAPNs.Terms()
        terms.environment = production ? .production : .sandbox
        terms.keys = [try development.registered(try development.key())]
        if !app.isEmpty { terms.rules.apps = Set(app) }
        terms.faults = try faults(wall: wall)
        terms.seed = seed
        var ca: String?
        var settings: APNsServer.Settings
        if let certificate, let certificateKey {
            settings = .init(certificate: .file(certificate), key: .file(certificateKey))
        } else {
            let made = try development.certificates()
            ca = made.ca
            settings = .init(certificate: .file(made.certificate), key: .file(made.key))
        }
        settings.host = address.host
        settings.port = address.port
        settings.clientCA = clientCA.map { .file($0) }
        let lines = PushLines(form: form)
        settings.onDecision = { lines.print($0, at: $1) }
        let server: APNsServer
        do {
            server = try APNsServer(terms, settings)
        } catch {
            Terminal.complain("timelinectl: \(error)")
            throw ExitStatus.usage
        }
        for script in try scripts(wall: wall) { server.script(script.token, script.behaviours) }
        introduce("https://\(address.host):\(server.port)", ca: ca)
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

    /// Prints the address of the service.
    private func introduce(_ url: String, ca: String?) {
        var object: JSONObject = [
            "ready": .string(url), "key": .string(development.keyPath),
            "keyId": .string(development.keyID), "teamId": .string(development.team),
            "environment": .string(production ? "production" : "sandbox"),
        ]
        object["ca"] = ca.map { .string($0) }
        Terminal.print(.object(object), as: form) {
            """
            ready \(url)
            In the gateway's configuration:
              apns:
                - app: \(app.first ?? "com.mygame")
                  team: \(development.team)
                  keyID: \(development.keyID)
                  key: \(development.keyPath)
                  environment: \(production ? "production" : "sandbox")
              push:
                \(production ? "apnsProduction" : "apnsSandbox"): \(url.dropFirst("https://".count))
            """ + (ca.map { "\n    apnsCA: \($0)" } ?? "")
                + "\n`timelinectl dev apns-token` prints a token for curl."
        }
    }
}

/// Prints a line for each push.
final class PushLines: Sendable {
    /// The number of characters of a device token that are shown.
    private static let tokenCharacters = 8

    private let form: OutputForm
    private let printed = Mutex(0)

    init(form: OutputForm) { self.form = form }

    var count: Int { printed.withLock { $0 } }

    func print(_ decision: SimulatedAPNs.Decision, at moment: SimulatedAPNs.Moment) {
        let request = decision.request
        let activity = ActivityPush(request)
        let managed = request.isManagement ? "\(request.method) \(request.path)" : nil
        let token = request.deviceToken.map { "\($0.prefix(Self.tokenCharacters))…" }
        let timestamp = activity?.timestamp.map { String($0) }
        let fields: [(name: String, value: String?)] = [
            ("request", managed), ("pushType", request.pushType), ("topic", request.topic),
            ("token", token),
            ("priority", request.priority), ("expiration", request.expiration),
            ("collapseId", request.collapseID), ("id", request.id ?? request.requestID),
            ("channel", request.channelID), ("event", activity?.event?.rawValue),
            ("timestamp", timestamp),
        ]
        let outcome = PushBehaviourText.text(decision.behaviour)
        // One at a time, so that lines stay whole.
        printed.withLock { printed in
            printed += 1
            var object: JSONObject = ["time": .integer(moment.wall), "outcome": .string(outcome)]
            if let answer = decision.behaviour.answer {
                object["status"] = .integer(Int64(answer.status))
                object["reason"] = answer.reason.map { .string($0) }
            }
            for field in fields { object[field.name] = field.value.map { .string($0) } }
            Terminal.print(.object(object), as: form) {
                Self.clock(moment.wall) + "  \(outcome)"
                    + fields.compactMap { field in field.value.map { "  \(field.name) \($0)" } }
                    .joined()
            }
        }
    }

    /// Prints a summary of the recorded pushes.
    static func summarise(_ record: PushRecord, as form: OutputForm) {
        let faults = record.violations.map { (text($0.key), $0.value) }.sorted { $0 < $1 }
        var violations = JSONObject()
        for (name, count) in faults { violations[name] = .integer(Int64(count)) }
        let summary: JSONObject = [
            "requests": .integer(Int64(record.requests)), "taken": .integer(Int64(record.taken)),
            "repeated": .integer(Int64(record.duplicates)),
            "connections": .integer(Int64(record.connections.count)),
            "providerTokens": .integer(Int64(record.providerTokens.count)),
            "violations": .object(violations),
        ]
        Terminal.print(["summary": .object(summary)], as: form) {
            let lines =
                [
                    "\(record.requests) requests  \(record.taken) accepted  "
                        + "\(record.duplicates) of them repeated  "
                        + "\(record.connections.count) connections  "
                        + "\(record.providerTokens.count) provider tokens"
                ] + faults.map { "\($0.1) times: \($0.0)" }
            return lines.joined(separator: "\n")
        }
    }

    private static func text(_ violation: PushViolation) -> String {
        switch violation {
        case .burst: "several requests at once before the first was taken"
        case .tooManyStreams: "more requests at once than allowed"
        case .repeatedAfterSuccess: "a push sent again that was taken"
        case .repeatedAfter(let reason): "a push sent again after \(reason.rawValue)"
        case .pushedToDead: "a push to a token or channel that was answered to be dead"
        case .badRequest(let reason): "a request refused with \(reason.rawValue)"
        case .badContent(let key): "a Live Activity push with a missing or invalid \(key)"
        case .outOfOrder: "a Live Activity push with a timestamp no higher than before"
        case .afterEnd: "a Live Activity push after the end"
        case .wrongActivityToken: "a Live Activity push to a token for other events"
        }
    }

    private static func clock(_ wall: Int64) -> String {
        var seconds = time_t(wall / 1_000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return "" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    }
}
