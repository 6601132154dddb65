// Not compiled by CI, which runs on Linux: kept short enough to be checked by reading.
#if canImport(WidgetKit)
    import WidgetKit
    import WidgetModel

    extension WidgetExtensionClient {
        /// Asks the gateway what is stale and reloads it with WidgetKit. Call it when the app
        /// launches and on background pushes.
        ///
        /// - Throws: ``GatewayFailure``.
        public func reloadStale() async throws(GatewayFailure) { try await stale().reload() }
    }

    extension StaleContent {
        /// Tells WidgetKit to reload stale content. WidgetKit chooses when; the provider then asks
        /// the gateway which timelines of the kind are stale.
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
            // On other platforms the API for controls needs a newer system than this package does;
            // apps reload their controls there themselves.
            #if os(iOS)
                for kind in controls { ControlCenter.shared.reloadControls(ofKind: kind) }
            #endif
        }
    }

    extension WidgetCenter {
        /// Returns the widgets that people have placed, in the form in which they are registered.
        ///
        /// - Parameters:
        ///   - family: The name of a family. Default: WidgetKit's own description.
        ///   - parameters: The values of a widget's intent, by their names in the catalog; empty
        ///     for a widget without configuration.
        /// - Throws: The error of WidgetKit.
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
