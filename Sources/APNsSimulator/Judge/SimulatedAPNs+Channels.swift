import WidgetModel

/// The storage of a channel's pushes for devices that are not reachable.
package enum ChannelPolicy: Int64, Sendable, CaseIterable {
    case noMessages = 0
    case mostRecentMessage = 1

    /// Reads the body of a request that creates a channel.
    static func read(_ body: [UInt8]) -> Result<ChannelPolicy, APNsReason> {
        guard let object = (try? JSONValue(parsing: body))?.objectValue else {
            return .failure(.badRequestPayload)
        }
        guard let type = object["push-type"] else { return .failure(.missingPushType) }
        guard type == "LiveActivity" else { return .failure(.invalidPushType) }
        let number = object["message-storage-policy"]?.integerValue
        guard object.members.count == 2, let policy = number.flatMap({ Self(rawValue: $0) })
        else { return .failure(.badRequestParams) }
        return .success(policy)
    }
}

extension SimulatedAPNs {
    /// Creates a channel. Returns its id; `nil` if the app has as many channels as it may.
    package mutating func createChannel(ofApp app: String, _ policy: ChannelPolicy) -> String? {
        let isFull = kept.channels.count >= PushRecord.channelAppsMax
        guard kept.channels[app]?.count ?? (isFull ? .max : 0) < terms.channelsMax else {
            return nil
        }
        idsMade += 1
        var random = SplitMix64(seed: terms.seed ^ FaultDraw.mixed(idsMade))
        let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        let id = Base64.standard.string(bytes)
        kept.channels[app, default: [:]][id] = policy
        return id
    }

    /// Performs a valid request that manages channels. Returns the response; `nil` for a push.
    mutating func manage(_ request: PushRequest) -> PushAnswer? {
        guard let (route, app) = request.channelRoute, route != .push else { return nil }
        var answer = PushAnswer(status: 200)
        switch (route, request.method) {
        case (.list, _):
            let ids = kept.channels[app]?.keys.sorted() ?? []
            answer.document = ["channels": .array(ids.map { .string($0) })]
        case (_, "POST"):
            guard let policy = try? ChannelPolicy.read(request.body).get(),
                let id = createChannel(ofApp: app, policy)
            else { return .refused(.cannotCreateChannelConfig) }
            answer = PushAnswer(status: 201)
            answer.channelID = id
        default:
            guard let id = request.channelID, let policy = kept.channels[app]?[id] else {
                return .refused(.channelNotRegistered)
            }
            let number = JSONValue.integer(policy.rawValue)
            answer.document = ["message-storage-policy": number, "push-type": "LiveActivity"]
            if request.method == "DELETE" {
                kept.channels[app]?[id] = nil
                answer = PushAnswer(status: 204)
            }
        }
        return answer
    }

    /// Returns the policy of the channel that a request names; `nil` if it does not exist.
    func policy(of request: PushRequest) -> ChannelPolicy? {
        guard let app = request.channelRoute?.app, let id = request.channelID else { return nil }
        return kept.channels[app]?[id]
    }
}
