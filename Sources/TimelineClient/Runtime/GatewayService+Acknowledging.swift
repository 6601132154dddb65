import WidgetModel

extension GatewayService {
    /// Acknowledges what a client has done.
    ///
    /// - Parameter registration: The digest of the registration that the client believes in force.
    package func acknowledge(
        _ acknowledgement: Acknowledgement, client: String, registration: String? = nil
    ) async throws(GatewayFailure) -> GatewayResponseHead {
        try await acknowledge(acknowledgement.json, client: client, registration: registration)
    }
}
