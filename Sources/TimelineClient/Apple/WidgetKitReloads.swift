// Not compiled by CI, which runs on Linux: kept so short that reading proves it.
#if canImport(WidgetKit)
    import WidgetKit
    import WidgetModel

    extension WidgetExtensionClient {
        /// Asks what is stale and tells WidgetKit: for the app's launch, and its background pushes.
        ///
        /// - Throws: ``GatewayFailure``.
        public func reloadStale() async throws(GatewayFailure) { try await stale().reload() }
    }

    extension StaleContent {
        /// Tells WidgetKit what is stale. It reloads when it thinks fit; the provider then asks the
        /// gateway which of the kind's timelines are meant.
        public func reload() {
            let center = WidgetCenter.shared
            if all {
                center.reloadAllTimelines()
            } else {
                for kind in timelines { center.reloadTimelines(ofKind: kind) }
            }
            if all || !recommendations.isEmpty { center.invalidateConfigurationRecommendations() }
            if #available(iOS 18, macOS 15, watchOS 11, visionOS 26, *) {
                for kind in relevance { center.invalidateRelevance(ofKind: kind) }
            }
            // Elsewhere controls are newer than what this package asks for; apps reload them there.
            #if os(iOS)
                for kind in controls { ControlCenter.shared.reloadControls(ofKind: kind) }
            #endif
        }
    }

    extension WidgetCenter {
        /// What people have placed, as it is registered.
        ///
        /// - Parameters:
        ///   - family: The name of a family. WidgetKit's own description is taken for it.
        ///   - parameters: The values of a widget's intent, by the names of the catalog; empty for a
        ///     widget that nobody can configure.
        /// - Throws: What WidgetKit throws.
        public func configuredWidgets(
            family: (WidgetFamily) -> String = { $0.description },
            parameters: (WidgetInfo) -> [String: ParameterValue]
        ) async throws -> [ConfiguredWidget] {
            let placed: [WidgetInfo] = try await withCheckedThrowingContinuation { continuation in
                getCurrentConfigurations { continuation.resume(with: $0) }
            }
            return placed.map {
                ConfiguredWidget(
                    kind: $0.kind, family: family($0.family), parameters: parameters($0))
            }.counted
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
            widgetPush(token: pushInfo.token, environment: environment)
        }
    }
#endif
