import APNsSimulator
import ArgumentParser
import Foundation
import GatewaySigning
import WidgetModel

struct FCMCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fcm",
        abstract: "Run a local push service that behaves like FCM and delivers nothing.",
        discussion: """
            Speaks HTTP/2 over TLS and checks what Google would: the assertions that access tokens \
            are asked with, the tokens, and the messages (HTTP v1). Prints a line per request, with \
            shortened registration tokens. Creates certificates for localhost and the key file of a \
            service account in --data, and prints the gateway configuration to use at startup. On \
            exit (Ctrl-C) it prints how many pushes it accepted and which rules were broken.

            Faults are injected by registration token (--answer) or at random (--fault): \
            \(PushBehaviourText.help(.fcm)).

            Examples:
              timelinectl dev fcm --listen 127.0.0.1:2199
              timelinectl dev fcm --answer anna=UNREGISTERED --answer bert=503,503,200
              timelinectl dev fcm --fault 5% --seed 7 --json
            """)

    @OptionGroup var simulator: SimulatorOptions

    @Option(help: ArgumentHelp("Directory for certificates and key file.", valueName: "directory"))
    var data = ".timeline-fcm"

    func validate() throws {
        let notation = PushBehaviourText(.fcm, wall: 0)
        _ = (try simulator.scripts(notation), try simulator.faults(notation))
    }

    func run() async throws {
        let file = "\(data)/service-account.json"
        let key: ServiceAccountKey
        let sender: FCMSender
        do throws(SigningError) {
            key = try ServiceAccountKey()
            sender = FCMSender(
                project: "development", email: "gateway@development.test", keyID: key.publicKey.kid,
                key: key.publicKey)
        } catch {
            throw ValidationError(error.message)
        }
        try await simulator.run(
            .init(.fcm, senders: [sender]),
            PushBehaviourText(.fcm, wall: APNsServer.time().wall),
            certificates: { try DevelopmentFiles.certificates(in: data) }
        ) { url, ca in
            do {
                // The file names the address of the token endpoint, so it is written anew.
                let document = Data(try sender.document(key, url: url).serialized)
                try document.write(to: URL(filePath: file), options: .atomic)
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600], ofItemAtPath: file)
            } catch {
                Terminal.complain("timelinectl: \(file) cannot be written: \(error)")
            }
            introduce(url, file, ca)
        }
    }

    /// Prints the address of the service.
    private func introduce(_ url: String, _ file: String, _ ca: String?) {
        var object: JSONObject = ["ready": .string(url), "serviceAccount": .string(file)]
        object["ca"] = ca.map { .string($0) }
        Terminal.print(.object(object), as: simulator.form) {
            """
            ready \(url)
            In the gateway's configuration:
              fcm:
                - app: com.mygame
                  serviceAccount: \(file)
              push:
                fcm: \(url.dropFirst("https://".count))
                serviceRanges: [127.0.0.0/8, "::1/128"]
            """ + (ca.map { "\n    serviceCA: \($0)" } ?? "")
        }
    }
}
