import Foundation
import GatewayTestSupport

/// `kill -9` with a log that keeps 300 entries, around the moments at which it is shortened.
enum KillRetentionRow {
    private static let entries: UInt64 = 300

    static func run(_ context: RowContext) throws {
        let data = try GatewayProcess.temporaryDirectory()
        // The development mode makes the certificates that the configuration then names, and notes the
        // URL for which tokens are minted.
        let first = try GatewayProcess(data: data)
        let url = first.url
        _ = first.terminate()
        let file = data + "/gateway.yaml"
        try """
        publicURL: \(url)
        localIssuer: true
        tls: { certificate: \(data)/certs/server.pem, key: \(data)/certs/server.key }
        retention: { changes: \(entries) }
        """.write(toFile: file, atomically: true, encoding: .utf8)
        let gateway = try GatewayProcess(data: data, configuration: file)
        let campaign = try context.campaign(on: gateway)
        // Who resumes below the start of the log has to be told all.
        campaign.recorder.add(.allExpected)
        campaign.recorder.add(.logKeeps(entries: entries))
        campaign.start(&context.generator)
        let end = campaign.recorder.now + context.seconds
        var kills = 0
        while campaign.recorder.now < end {
            // Upkeep comes 30 s after a start.
            pause(
                seconds: context.generator.happens(30)
                    ? 29 + context.seconds(0, 2) : context.seconds(0.5, 3))
            try gateway.restart()
            kills += 1
        }
        try campaign.settle()
        context.figures += [("kills", "\(kills)")]
    }
}
