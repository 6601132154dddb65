import WidgetModel

/// A report to the gateway of a client's progress (the `acks` resource of the HTTP API).
package struct Acknowledgement: Sendable, Equatable {
    /// The most entries of each list in one acknowledgement. Enough for one placement of every
    /// widget a client may register, and far below the limit of a request body.
    package static let entriesMax = 200
    /// The longest reason of a failure, in characters.
    package static let reasonCharactersMax = 200

    package struct BuiltTimeline: Sendable, Equatable {
        package var widget: WidgetInfo
        /// The duration of the provider's build, ms.
        package var milliseconds: Int
        /// Whether its entries are those of the one before.
        package var isUnchanged = false
    }

    /// A timeline that could not be built.
    package struct Failed: Sendable, Equatable {
        /// The widget of the timeline.
        package var widget: WidgetInfo
        /// The reason, for the gateway's operator.
        package var reason: String
    }

    /// The cursor up to which every change is applied; `nil` only before the first registration.
    package var cursor: Cursor?
    /// The timelines built since the last acknowledgement.
    package var rebuilt: [BuiltTimeline] = []
    /// The timelines that failed to build since the last acknowledgement.
    package var failed: [Failed] = []
    /// The kinds whose recommendation set was checked and is the registered one.
    package var recommendations: [String] = []

    package init(cursor: Cursor? = nil) {
        self.cursor = cursor
    }

    /// Whether there is nothing to report besides the cursor.
    var isEmpty: Bool { rebuilt.isEmpty && failed.isEmpty && recommendations.isEmpty }

    /// The acknowledgement in the format of the gateway.
    package var json: JSONValue {
        AcknowledgementBody(
            cursor: cursor,
            rebuilt: rebuilt.map {
                AcknowledgementBody.timeline(
                    ofKind: $0.widget.kind, $0.widget.configuration, "ms",
                    .integer(Int64($0.milliseconds)), isUnchanged: $0.isUnchanged)
            },
            failed: failed.map {
                AcknowledgementBody.timeline(
                    ofKind: $0.widget.kind, $0.widget.configuration, "reason",
                    .string(String($0.reason.prefix(Self.reasonCharactersMax))))
            }, recommendations: recommendations
        ).json
    }
}
