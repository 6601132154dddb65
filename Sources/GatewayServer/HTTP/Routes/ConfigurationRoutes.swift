import GatewayDocuments
import GatewayEngine
import GatewaySigning
import NIOHTTP1
import WidgetModel

/// The routes of the configuration: for operators of the whole gateway, whose tokens are for the
/// app `*`.
extension GatewayRoutes {
    /// Reads the configuration again, as SIGHUP does.
    func reloadConfiguration(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        try await requireOperatorOfAll(request, context)
        return try await Self.answer(configuration.reload)
    }

    /// Returns the changes that another configuration, sent as YAML or JSON, would cause.
    func compareConfiguration(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> RouteResponse {
        try await requireOperatorOfAll(request, context)
        let body = try await request.bytes(upTo: configuration.documentBytesMax)
        return try await engine.documents.run(.large, for: VerifiedToken.everyApp) {
            try await Self.answer { () async throws(Faults) -> [ChangedOption] in
                try await configuration.compare(body)
            }
        }
    }

    private func requireOperatorOfAll(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws {
        try authorizer.require(.operate, for: try await token(request, context), app: "*")
    }

    private static func answer(
        _ changes: () async throws(Faults) -> [ChangedOption]
    ) async throws -> RouteResponse {
        let difference: ConfigurationDifference
        do throws(Faults) {
            difference = ConfigurationDifference(changes: try await changes())
        } catch {
            throw Problem.wrong(error)
        }
        return try RouteResponse(.ok, document: difference)
    }
}

/// The operations on the configuration that the routes offer to operators.
package struct ConfigurationCommands: Sendable {
    /// Reads the configuration again, as SIGHUP does; returns the changes.
    let reload: @Sendable () async throws(Faults) -> [ChangedOption]
    /// Returns the changes that another document would cause.
    let compare: @Sendable (_ document: [UInt8]) async throws(Faults) -> [ChangedOption]
    /// The maximum length of a document, in bytes.
    let documentBytesMax: Int
}
