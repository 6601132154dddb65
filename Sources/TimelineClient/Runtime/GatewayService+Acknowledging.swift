extension GatewayService {
    /// Acknowledges what a client has done.
    package func acknowledge(
        _ acknowledgement: Acknowledgement, client: String
    ) async throws(GatewayFailure) -> GatewayResponseHead {
        try await json("POST", "\(base(ofClient: client))/acks", body: acknowledgement.json).head
    }
}
