import TimelineGatewayClient
import WidgetModel
import WidgetViews

/// A report to the gateway of a client's progress (the `acks` resource of the HTTP API).
package struct Acknowledgement: Sendable, Equatable {
    /// The most entries of each list in one acknowledgement. Enough for one placement of every
    /// widget a client may register, and far below the limit of a request body.
    package static let entriesMax = 200
    package static let reasonCharactersMax = 200

    package struct BuiltTimeline: Sendable, Equatable {
        package var widget: WidgetInfo
        /// The duration of the provider's build, ms.
        package var milliseconds: Int
        /// Whether its entries are those of the one before.
        package var isUnchanged = false
    }

    package struct Failed: Sendable, Equatable {
        package var widget: WidgetInfo
        package var reason: String
    }

    /// The cursor up to which every change is applied; `nil` only before the first registration.
    package var cursor: Cursor?
    package var rebuilt: [BuiltTimeline] = []
    package var failed: [Failed] = []
    /// The kinds whose recommendation set was checked and is the registered one.
    package var recommendations: [String] = []

    /// Whether there is nothing to report besides the cursor.
    var isEmpty: Bool { rebuilt.isEmpty && failed.isEmpty && recommendations.isEmpty }

    /// Drops the oldest entries of each list beyond ``entriesMax``.
    mutating func dropOldest() {
        rebuilt = Array(rebuilt.suffix(Self.entriesMax))
        failed = Array(failed.suffix(Self.entriesMax))
    }

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

extension GatewayService {
    /// Sends a client's acknowledgement. `registration` is the digest of the registration that the
    /// client expects to be in force.
    package func acknowledge(
        _ acknowledgement: Acknowledgement, client: String, registration: String? = nil
    ) async throws(GatewayFailure) -> GatewayResponseHead {
        try await acknowledge(acknowledgement.json, client: client, registration: registration)
    }
}
