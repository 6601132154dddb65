import GatewayCore
import GatewayDelivery
import GatewayDocuments
import WidgetModel

/// Starts Live Activities on request of backends. A broadcast channel is a client without a device,
/// with an activity for each environment of APNs.
package struct ActivityStarts: Sendable {
    /// Creates and deletes channels of an app, in one environment.
    package struct Channels: Sendable {
        let create: @Sendable () async throws -> String
        let delete: @Sendable (_ id: String) async throws -> Void
    }

    private let engine: Engine
    private let channels: @Sendable (_ app: String) -> [String: Channels]
    /// Held while the channels of a client are created or deleted.
    private let locks = RegistrationLocks()
    /// The platform of clients that are channels.
    private static let platform = "broadcast"

    /// - Parameter channels: Returns what manages the channels of an app, by environment.
    package init(
        _ engine: Engine, channels: @escaping @Sendable (_ app: String) -> [String: Channels]
    ) {
        (self.engine, self.channels) = (engine, channels)
    }

    /// Appends a start, after its channels were created and registered. If anything in between
    /// fails, a repeated request continues from there.
    ///
    /// - Throws: ``EngineError``.
    package func post(_ start: ActivityStart, app: String) async throws -> StartTaken {
        let wall = engine.clock.wallMilliseconds()
        let count = try await engine.push?.ask { scheduler, _ in
            scheduler.starts.count(of: app, wall: wall)
        }
        let isFull = count ?? 0 >= RecentStarts.countMax
        _ = try await engine.changes.catalog(of: app)
        var appended = try await engine.log.append(start, to: app, isFull: isFull)
        if appended == nil, let channel = start.channel {
            let key = ClientKey(app: app, client: channel)
            appended = try await exclusively(for: key) {
                var start = start
                start.channels = try await registerChannels(of: key, for: start)
                return try await engine.log.append(start, to: app)
            }
        }
        guard let taken = appended else { throw EngineError.busy(.registrationChanges) }
        return taken
    }

    /// Removes a client, after its channels were deleted.
    ///
    /// - Throws: ``EngineError``.
    package func remove(_ key: ClientKey) async throws {
        try await exclusively(for: key) {
            for channel in engine.registry.record(key)?.registration.broadcasts ?? [] {
                // Without a credential nobody can delete it.
                try await channels(key.app)[channel.environment]?.delete(channel.channel ?? "")
                // If the next one cannot be deleted, no start may use this one.
                try await engine.clients.drop(.apns(channel), of: key)
            }
            try await engine.clients.remove(key)
        }
    }

    /// Returns the ids of a client's channels by environment, after those that are missing were
    /// created, and all of them registered. One on which an activity has ended is replaced.
    private func registerChannels(
        of key: ClientKey, for start: ActivityStart
    ) async throws -> [String: String] {
        let services = channels(key.app)
        let known = engine.registry.record(key)?.registration
        guard known?.platform ?? Self.platform == Self.platform, !services.isEmpty else {
            throw EngineError.invalid(
                Faults(
                    "channel", "must be the id of no other client, in an app with `apns` options"))
        }
        let broadcasts = known?.broadcasts ?? []
        let ended =
            try await broadcasts.isEmpty
            ? nil
            : engine.push?.askLeading { scheduler, now in
                scheduler.addresses(of: key, now: now).filter { $0.absence == .ended }
                    .map(\.address)
            }
        let former = broadcasts.filter { ended?.contains(.apns($0)) ?? false }
        var ids: [String: String] = [:]
        for channel in broadcasts where !former.contains(channel) {
            ids[channel.environment] = channel.channel
        }
        var missing = services.keys.filter { ids[$0] == nil }.sorted(by: >)
        repeat {
            let environment = missing.popLast()
            let service = environment.flatMap { services[$0] }
            let made = try await service?.create()
            if let environment { ids[environment] = made }
            do {
                // Each at once: it is not lost if the next one cannot be created.
                try await register(ids, of: key, for: start, isNew: known == nil)
            } catch let refusal as EngineError where !refusal.isFailure {
                // No registration names it.
                if let made { try? await service?.delete(made) }
                throw refusal
            }
        } while !missing.isEmpty
        for channel in former {
            try? await services[channel.environment]?.delete(channel.channel ?? "")
        }
        return ids
    }

    private func register(
        _ ids: [String: String], of key: ClientKey, for start: ActivityStart, isNew: Bool
    ) async throws {
        let activities = ids.sorted { $0.key < $1.key }.map { environment, id in
            RegisteredActivity(
                type: start.type, id: environment, attributes: start.attributes.comparable,
                delivery: .apns(
                    .init(
                        pushType: APNsPushType.liveactivity.rawValue, token: "",
                        environment: environment, channel: id)))
        }
        let document: JSONValue = [
            "platform": .string(Self.platform),
            "activities": .array(activities.map { $0.json(maskingTokens: false) }),
        ]
        // A patch keeps the attributes that the backend gave it.
        _ = try await engine.clients.register(
            key, isNew ? .document(document) : .patch(document), by: .backend)
    }

    private func exclusively<Result>(
        for key: ClientKey, _ body: () async throws -> Result
    ) async throws -> Result {
        guard await locks.lock(key) else { throw EngineError.busy(.registrations) }
        defer { locks.unlock(key) }
        do {
            return try await body()
        } catch let failure as APNsChannels.Failure {
            throw EngineError.channelService(failure.reason)
        }
    }
}

extension ClientRegistration {
    /// The broadcast channels among the addresses of its activities.
    fileprivate var broadcasts: [DeliveryAddress.APNsAddress] {
        activities.compactMap(\.delivery?.apns).filter { $0.channel != nil }
    }
}
