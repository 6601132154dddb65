import WidgetModel

/// What a client tells the gateway it has done (design section 5, `acks`).
package struct Acknowledgement: Sendable, Equatable {
    /// Most entries of one acknowledgement, built and failed together: far below the limit of a
    /// body, and one placement of every widget a client may register.
    package static let entriesMax = 200
    /// Longest reason, in characters.
    package static let reasonCharactersMax = 200

    /// One timeline that was built.
    package struct Rebuilt: Sendable, Equatable {
        /// Which.
        package var widget: WidgetInfo
        /// How long its provider took.
        package var milliseconds: Int
    }

    /// One timeline that could not be built.
    package struct Failed: Sendable, Equatable {
        /// Which.
        package var widget: WidgetInfo
        /// Why, for the gateway's operator.
        package var reason: String
    }

    /// Everything up to here is applied; `nil` only before the first registration.
    package var cursor: Cursor?
    /// What was built since the last acknowledgement.
    package var rebuilt: [Rebuilt] = []
    /// What could not be built since.
    package var failed: [Failed] = []
    /// Kinds whose recommendation set was looked at and is the registered one.
    package var recommendations: [String] = []

    /// Nothing to tell.
    package init(cursor: Cursor? = nil) {
        self.cursor = cursor
    }

    /// Whether there is nothing to report beside the cursor.
    var isEmpty: Bool { rebuilt.isEmpty && failed.isEmpty && recommendations.isEmpty }

    /// The acknowledgement as the gateway reads it.
    package var json: JSONValue {
        AcknowledgementBody(
            cursor: cursor,
            rebuilt: rebuilt.map {
                AcknowledgementBody.timeline(
                    $0.widget.kind, $0.widget.configuration, "ms",
                    .integer(Int64($0.milliseconds)))
            },
            failed: failed.map {
                AcknowledgementBody.timeline(
                    $0.widget.kind, $0.widget.configuration, "reason",
                    .string(String($0.reason.prefix(Self.reasonCharactersMax))))
            }, recommendations: recommendations
        ).json
    }
}
