import WidgetModel

#if canImport(ActivityKit) && os(iOS) && !targetEnvironment(macCatalyst)
    import ActivityKit
    import Foundation

    extension GatewayClient {
        /// Registers the Live Activities of a type that run, each with its own push token, and the
        /// token to start others: now, and whenever one starts or ends, or a token changes, until
        /// the calling task is cancelled. Call it when the app launches, also in the background:
        /// the system wakes it when a push has started an activity.
        ///
        /// - Parameters:
        ///   - environment: `production`, or `sandbox` for builds signed for development.
        ///   - channel: Returns the broadcast channel that an activity was started with, which
        ///     ActivityKit does not tell.
        public nonisolated func followActivities<Attributes: ActivityAttributes & Sendable>(
            of type: Attributes.Type, environment: String = "production",
            channel: @escaping @Sendable (Attributes) -> String? = { _ in nil }
        ) async {
            let (changes, change) = AsyncStream.makeStream(
                of: Void.self, bufferingPolicy: .bufferingNewest(1))
            change.yield()
            async let registering: Void = register(type, environment, channel, after: changes)
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await _ in Activity<Attributes>.pushToStartTokenUpdates { change.yield() }
                }
                for await activity in Activity<Attributes>.activityUpdates {
                    change.yield()
                    let id = activity.id
                    @Sendable func running() -> [Activity<Attributes>] {
                        Activity<Attributes>.activities.filter { $0.id == id }
                    }
                    group.addTask {
                        for activity in running() {
                            for await _ in activity.pushTokenUpdates { change.yield() }
                        }
                    }
                    group.addTask {
                        for activity in running() {
                            for await _ in activity.activityStateUpdates { change.yield() }
                        }
                    }
                }
            }
            change.finish()
            await registering
        }

        /// One registration after the other: of two at a time the older could arrive last.
        private func register<Attributes: ActivityAttributes & Sendable>(
            _ type: Attributes.Type, _ environment: String,
            _ channel: @Sendable (Attributes) -> String?, after changes: AsyncStream<Void>
        ) async {
            func address(_ token: Data) -> DeliveryAddress {
                .push(.liveactivity, token: token, environment: environment)
            }
            for await _ in changes {
                let running = Activity<Attributes>.activities
                    .filter { [.active, .stale].contains($0.activityState) }
                    .map { activity in
                        RegisteredActivity(
                            type: "\(type)", id: activity.id,
                            of: (try? JSONValue(codable: activity.attributes)) ?? .null,
                            channel: channel(activity.attributes),
                            delivery: activity.pushToken.map(address))
                    }
                let start = Activity<Attributes>.pushToStartToken.map(address)
                // What fails is part of the next registration.
                try? await register(activities: running, start: start, ofType: "\(type)")
            }
        }
    }
#endif
