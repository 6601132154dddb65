import APNsSimulator
import ArgumentParser
import Foundation
import GatewayTLS
import Synchronization
import WidgetModel

struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Simulate push services for development.",
        subcommands: [
            APNsCommand.self, APNsTokenCommand.self, WebPushCommand.self, FCMCommand.self,
        ])
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
            \(PushBehaviourText.help(.apns)).

            Examples:
              timelinectl dev apns
              timelinectl dev apns --answer 0a0b0c=410 --answer ff00=503,503,200
              timelinectl dev apns --fault 5% --seed 7 --json
              timelinectl dev apns --fault 1%=TooManyRequests --fault 0.1%=cut
              timelinectl dev apns --provider-key AuthKey_ABC.p8 --key-id ABC --team DEF
            """)

    @OptionGroup var development: DevelopmentAPNs
    @OptionGroup var simulator: SimulatorOptions

    @Option(
        name: .customLong("client-ca"),
        help: ArgumentHelp(
            "Accept client certificates of this CA instead of provider tokens.", valueName: "file"))
    var clientCA: String?

    @Flag(help: "Simulate the production environment instead of the sandbox.")
    var production = false

    @Option(help: ArgumentHelp("Accept pushes for this app only. Repeatable.", valueName: "id"))
    var app: [String] = []

    func validate() throws {
        let notation = PushBehaviourText(.apns, wall: 0)
        _ = (try simulator.scripts(notation), try simulator.faults(notation))
    }

    func run() async throws {
        let notation = PushBehaviourText(.apns, wall: APNsServer.time().wall)
        var terms = SimulatedAPNs.Terms()
        terms.environment = production ? .production : .sandbox
        terms.keys = [try development.registered(try development.key())]
        if !app.isEmpty { terms.rules.apps = Set(app) }
        try await simulator.run(
            terms, notation, clientCA: clientCA.map { .file($0) },
            certificates: development.certificates, introduce: introduce)
    }

    /// Prints the address of the service.
    private func introduce(_ url: String, ca: String?) {
        var object: JSONObject = [
            "ready": .string(url), "key": .string(development.keyPath),
            "keyId": .string(development.keyID), "teamId": .string(development.team),
            "environment": .string(production ? "production" : "sandbox"),
        ]
        object["ca"] = ca.map { .string($0) }
        Terminal.print(.object(object), as: simulator.form) {
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
        let token = (request.deviceToken ?? request.registrationToken?[...]).map {
            "\($0.prefix(Self.tokenCharacters))…"
        }
        let timestamp = activity?.timestamp.map { String($0) }
        let fields: [(name: String, value: String?)] = [
            ("request", managed), ("pushType", request.pushType),
            ("topic", request.topic ?? request.values["topic"]),
            ("token", token),
            ("priority", request.priority), ("expiration", request.expiration),
            ("collapseId", request.collapseID), ("id", request.id ?? request.requestID),
            ("channel", request.channelID), ("event", activity?.event?.rawValue),
            ("timestamp", timestamp),
            ("ttl", request.values["ttl"]), ("urgency", request.values["urgency"]),
            ("bytes", request.values["ttl"] == nil ? nil : "\(request.bodyBytes)"),
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
        case .malformed(let fault): "a request refused because \(fault)"
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
