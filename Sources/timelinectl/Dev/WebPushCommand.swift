import APNsSimulator
import ArgumentParser
import Foundation
import WidgetModel

struct WebPushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "webpush",
        abstract: "Run a local push service of a browser, which delivers nothing.",
        discussion: """
            Speaks HTTP/2 over TLS and checks pushes to any /push/ID: TTL, Urgency and Topic (RFC \
            8030), the sender's token (RFC 8292) and the form of the encrypted body (RFC 8188, RFC \
            8291), which it cannot decrypt. Prints a line per push, with the first characters of \
            the id. Creates certificates for localhost and a sender's key in --data if they are \
            missing, and prints the gateway configuration to use at startup. On exit (Ctrl-C) it \
            prints how many pushes it accepted and which rules were broken.

            Faults are injected by subscription (--answer) or at random (--fault): \
            \(PushBehaviourText.help(.webPush)).

            Examples:
              timelinectl dev webpush --listen 127.0.0.1:2198
              timelinectl dev webpush --answer anna=410 --answer bert=503,503,201
              timelinectl dev webpush --fault 5% --seed 7 --json
            """)

    @OptionGroup var simulator: SimulatorOptions

    @Option(help: ArgumentHelp("Directory for certificates and key.", valueName: "directory"))
    var data = ".timeline-webpush"

    func validate() throws {
        let notation = PushBehaviourText(.webPush, wall: 0)
        _ = (try simulator.scripts(notation), try simulator.faults(notation))
    }

    func run() async throws {
        let keyPath = "\(data)/vapid.pem"
        _ = try DevelopmentFiles.key(keyPath, creatingIn: data)
        try await simulator.run(
            .init(.webPush), PushBehaviourText(.webPush, wall: APNsServer.time().wall),
            certificates: { try DevelopmentFiles.certificates(in: data) }
        ) { url, ca in
            var object: JSONObject = ["ready": .string(url), "key": .string(keyPath)]
            object["ca"] = ca.map { .string($0) }
            Terminal.print(.object(object), as: simulator.form) {
                """
                ready \(url)
                In the gateway's configuration:
                  webPush:
                    - app: com.mygame
                      key: \(keyPath)
                      subject: mailto:operator@example.com
                  push:
                    serviceRanges: [127.0.0.0/8, "::1/128"]
                """ + (ca.map { "\n    serviceCA: \($0)" } ?? "")
                    + "\nSubscriptions are \(url)/push/ID."
            }
        }
    }
}
