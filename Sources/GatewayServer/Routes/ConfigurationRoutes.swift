import GatewaySigning
import NIOHTTP1
import WidgetModel

/// The configuration: for operators of the whole gateway, whose tokens are for the app `*`.
extension GatewayRoutes {
    /// Reads the configuration again, as SIGHUP does.
    func reloadConfiguration(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        try await requireOperatorOfAll(request, context)
        return try await Self.answer { () async throws(Faults) -> [ConfigurationChange] in
            try await reload.reload(.request)
        }
    }

    /// Says what another configuration, sent as YAML or JSON, would change.
    func compareConfiguration(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws -> GatewayAnswer {
        try await requireOperatorOfAll(request, context)
        let body = try await request.bytes(upTo: ConfigurationLayers.bytesMax)
        return try await documents.run(.large, for: VerifiedToken.everyApp) {
            try await Self.answer { () async throws(Faults) -> [ConfigurationChange] in
                try await reload.changes(to: body)
            }
        }
    }

    private func requireOperatorOfAll(
        _ request: GatewayRequest, _ context: GatewayContext
    ) async throws {
        try authorizer.require(.operate, try await token(request, context), app: "*")
    }

    private static func answer(
        _ changes: () async throws(Faults) -> [ConfigurationChange]
    ) async throws -> GatewayAnswer {
        do throws(Faults) {
            return GatewayAnswer(
                .ok, json: ["changes": .array(try await changes().map(\.json))])
        } catch {
            throw Problem.wrong(error)
        }
    }
}
