import WidgetModel

extension GatewayService {
    /// Sends a client's acknowledgement.
    ///
    /// - Parameter registration: The digest of the registration that the client expects to be in
    ///   force.
    package func acknowledge(
        _ acknowledgement: Acknowledgement, client: String, registration: String? = nil
    ) async throws(GatewayFailure) -> GatewayResponseHead {
        try await acknowledge(acknowledgement.json, client: client, registration: registration)
    }
}
