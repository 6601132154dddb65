import CurlMulti
import GatewayCore
import Synchronization
import WidgetModel

/// Creates and deletes broadcast channels of Live Activities, in one environment of APNs.
package final class APNsChannels: Sendable {
    /// The reason why a channel was not created or deleted: APNs' own, or the word for what went
    /// wrong.
    package struct Failure: Error, Sendable {
        package let reason: String

        package init(reason: String) { self.reason = String(reason.prefix(64)) }
    }

    private let settings: APNsPool.Configuration
    /// Where they are managed.
    let origin: String
    /// Made for the first request.
    private let client = Mutex<CurlClient?>(nil)

    /// - Parameters:
    ///   - settings: The settings of the sender's pushes.
    ///   - isApple: Whether pushes go to Apple, which has other hosts for managing channels.
    package init(
        _ settings: APNsPool.Configuration, _ environment: APNsEnvironment, isApple: Bool
    ) {
        self.settings = settings
        let host =
            switch environment {
            case .production: "https://api-manage-broadcast.push.apple.com:2196"
            case .sandbox: "https://api-manage-broadcast.sandbox.push.apple.com:2195"
            }
        origin = isApple ? host : settings.origin
    }

    /// Creates a channel of an app, whose last push is stored for devices that are not reachable;
    /// returns its id.
    package func create(bundle: String) async throws(Failure) -> String {
        let body: JSONValue = ["message-storage-policy": 1, "push-type": "LiveActivity"]
        let response = try await send("POST", bundle, [], body: body.serialized)
        guard response.status == 201, let id = response.head["apns-channel-id"],
            (1...DeliveryAddress.channelBytesMax).contains(id.utf8.count),
            Base64.standard.decode(id) != nil
        else { throw Self.failure(response) }
        return id
    }

    /// Deletes a channel of an app, unless there is none with this id.
    package func delete(_ id: String, bundle: String) async throws(Failure) {
        let response = try await send("DELETE", bundle, [("apns-channel-id", id)])
        let failure = Self.failure(response)
        guard response.status == 204 || failure.reason == "ChannelNotRegistered" else {
            throw failure
        }
    }

    private static func failure(_ response: CurlResponse) -> Failure {
        let document = (try? JSONValue(parsing: response.body))?.objectValue
        return Failure(reason: document?["reason"]?.stringValue ?? String(response.status))
    }

    private func send(
        _ method: String, _ bundle: String, _ fields: [(name: String, value: String)],
        body: [UInt8]? = nil
    ) async throws(Failure) -> CurlResponse {
        var random = SplitMix64(seed: .random(in: .min ... .max))
        var fields = fields
        fields.append(("apns-request-id", random.uuid()))
        if body != nil { fields.append(("content-type", "application/json")) }
        if case .key(let key) = settings.credential {
            // One that pushes use, too, if there is a share.
            let token = await key.token(refused: nil, settings.clock)
            fields.append(("authorization", "bearer \(token?.text ?? "")"))
        }
        do throws(CurlError) {
            let request = CurlRequest(
                method, origin: origin, target: "/1/apps/\(bundle)/channels",
                fields: try CurlFields(fields), body: body, timeout: settings.deadline)
            return try await madeClient().send(request)
        } catch {
            throw Failure(reason: error.code.rawValue)
        }
    }

    private func madeClient() throws(CurlError) -> CurlClient {
        try client.withLock { client throws(CurlError) -> CurlClient in
            if let client { return client }
            var configuration = CurlClient.Configuration(name: "channels")
            configuration.trust = settings.trust
            configuration.identity = settings.identity
            let made = try CurlClient(configuration)
            client = made
            return made
        }
    }
}
