import WidgetModel

#if canImport(WidgetKit)
    import AppIntents
    import Foundation
    import WidgetKit
#endif

extension StaleContent {
    /// Tells WidgetKit to make stale content anew. WidgetKit chooses when, and then asks the
    /// provider. Does nothing on systems without WidgetKit.
    public static func reloadWithWidgetKit(_ content: StaleContent) {
        #if canImport(WidgetKit)
            guard #available(visionOS 26, *) else { return }
            let center = WidgetCenter.shared
            if content.all {
                center.reloadAllTimelines()
                center.invalidateConfigurationRecommendations()
            } else {
                for kind in content.timelines { center.reloadTimelines(ofKind: kind) }
                if !content.recommendations.isEmpty {
                    center.invalidateConfigurationRecommendations()
                }
            }
            for kind in content.relevance { center.invalidateRelevance(ofKind: kind) }
            #if !os(visionOS)
                guard #available(macOS 26, watchOS 26, *) else { return }
                if content.all {
                    ControlCenter.shared.reloadAllControls()
                } else {
                    for kind in content.controls {
                        ControlCenter.shared.reloadControls(ofKind: kind)
                    }
                }
            #endif
        #endif
    }
}

#if canImport(WidgetKit)
    extension ClientRegistration {
        /// Returns a registration of this device: its platform and its system's version.
        ///
        /// The platform of an iPad is `iOS`; set it to `iPadOS` if the catalog tells them apart.
        public static func ofThisDevice() -> ClientRegistration {
            #if os(macOS)
                let platform = "macOS"
            #elseif os(watchOS)
                let platform = "watchOS"
            #elseif os(visionOS)
                let platform = "visionOS"
            #else
                let platform = "iOS"
            #endif
            let version = ProcessInfo.processInfo.operatingSystemVersion
            return ClientRegistration(
                platform: platform,
                osVersion: OSVersion("\(version.majorVersion).\(version.minorVersion)"))
        }
    }

    @available(visionOS 26, *)
    extension ConfiguredWidget {
        /// Creates a widget as its provider knows it, by the name of the family that
        /// `configuredWidgets(of:)` registers.
        public init(kind: String, family: WidgetFamily, intent: (any GatewayIntent)? = nil) {
            self.init(
                kind: kind, family: family.description,
                parameters: intent?.gatewayParameters ?? [:])
        }
    }

    @available(visionOS 26, *)
    extension WidgetCenter {
        /// Returns the widgets that people have placed, for a registration.
        ///
        /// - Parameter intents: The types of the intents that people configure the widgets with.
        /// - Throws: The error of WidgetKit.
        public func configuredWidgets(
            of intents: [any (WidgetConfigurationIntent & GatewayIntent).Type] = []
        ) async throws -> [ConfiguredWidget] {
            let placed: [WidgetInfo] = try await withCheckedThrowingContinuation { continuation in
                getCurrentConfigurations { continuation.resume(with: $0) }
            }
            return placed.map { info in
                ConfiguredWidget(
                    kind: info.kind, family: info.family,
                    intent: intents.lazy.compactMap { Self.intent($0, of: info) }.first)
            }
        }

        private static func intent<Intent: WidgetConfigurationIntent & GatewayIntent>(
            _ type: Intent.Type, of info: WidgetInfo
        ) -> (any GatewayIntent)? {
            info.widgetConfigurationIntent(of: type)
        }
    }

    @available(iOS 26, macOS 26, watchOS 26, visionOS 26, *)
    extension DeliveryAddress {
        /// WidgetKit's push token, which reloads all widgets of the app.
        ///
        /// - Parameter environment: `production`, or `sandbox` for builds signed for development.
        public static func widgetPush(
            _ pushInfo: WidgetPushInfo, environment: String = "production"
        ) -> DeliveryAddress {
            push(.widgets, token: pushInfo.token, environment: environment)
        }
    }
#endif

#if canImport(WidgetKit) && !os(visionOS)
    @available(macOS 26, watchOS 26, *)
    extension ControlCenter {
        /// Returns the controls that people have placed, each with its own push token, for a
        /// registration.
        ///
        /// - Parameters:
        ///   - intents: The types of the intents that people configure the controls with.
        ///   - environment: `production`, or `sandbox` for builds signed for development.
        /// - Throws: The error of WidgetKit.
        public func placedControls(
            of intents: [any (ControlConfigurationIntent & GatewayIntent).Type] = [],
            environment: String = "production"
        ) async throws -> [PlacedControl] {
            try await currentControls().map { info in
                let intent = intents.lazy.compactMap { Self.intent($0, of: info) }.first
                return PlacedControl(
                    kind: info.kind, id: info.id, parameters: intent?.gatewayParameters ?? [:],
                    delivery: info.pushInfo.map {
                        .push(.controls, token: $0.token, environment: environment)
                    })
            }
        }

        private static func intent<Intent: ControlConfigurationIntent & GatewayIntent>(
            _ type: Intent.Type, of info: ControlInfo
        ) -> (any GatewayIntent)? {
            info.configurationIntent(of: type)
        }
    }
#endif
