import Foundation
import WidgetModel

/// Tells the gateway what one process of an app knows of its client, and nothing else.
///
/// An app has several: the app itself, whose ``TimelineClient`` registers widgets and sets of
/// recommendations, and handlers of pushes, which know tokens alone. Each changes its own part of
/// the registration (a merge patch, RFC 7396), in any order. While the client is not registered yet,
/// its part is kept in the archive, and registered with the rest.
public struct ClientRegistrar: Sendable {
    /// Apple's two push environments.
    public enum PushEnvironment: String, Sendable {
        /// Apps from the App Store and TestFlight.
        case production
        /// Apps signed for development.
        case sandbox
    }

    private let service: GatewayService
    private let client: String
    private let environment: PushEnvironment
    private let otherDelivery: [DeliveryAddress]
    private let archive: ClientArchive?

    /// A registrar for one client.
    ///
    /// - Parameters:
    ///   - otherDelivery: How else the client is told, as its ``TimelineClientConfiguration`` says.
    ///   - archive: The client's own, for what is known before it is registered.
    /// - Returns: `nil` unless `app` and `client` are 1 to 128 of `A-Za-z0-9._~-`.
    public init?(
        app: String, client: String, connection: any GatewayConnection,
        environment: PushEnvironment, otherDelivery: [DeliveryAddress] = [.stream],
        archive: ClientArchive? = nil
    ) {
        guard Identifier.isValid(app), Identifier.isValid(client) else { return nil }
        service = GatewayService(connection: connection, app: app)
        self.client = client
        self.environment = environment
        self.otherDelivery = otherDelivery
        self.archive = archive
    }

    /// The widgets' push token changed: for ``WidgetPushHandler``.
    ///
    /// - Throws: ``GatewayFailure``; asked again with the next change, or by the caller.
    public func register(_ pushInfo: WidgetPushInfo) async throws(GatewayFailure) {
        let address = DeliveryAddress.apns(address(pushInfo.token, "widgets"))
        try? archive?.save(push: [address])
        let registration = ClientRegistration(platform: "", delivery: otherDelivery + [address])
        try await patch("delivery", of: registration)
    }

    /// The controls' push tokens changed: for ``ControlPushHandler``.
    ///
    /// - Throws: ``GatewayFailure``.
    public func register(_ controls: [ControlInfo]) async throws(GatewayFailure) {
        let placed = controls.map { control in
            PlacedControl(
                kind: control.kind, id: control.id, parameters: control.configuration,
                delivery: control.pushInfo.map { .apns(address($0.token, "controls")) })
        }
        try? archive?.save(controls: placed)
        try await patch("controls", of: ClientRegistration(platform: "", controls: placed))
    }

    private func patch(
        _ member: String, of registration: ClientRegistration
    ) async throws(GatewayFailure) {
        let document = registration.json(maskingTokens: false).objectValue
        var patch = JSONObject()
        patch[member] = document?[member] ?? .null
        do throws(GatewayFailure) {
            _ = try await service.patch(.object(patch), client: client)
        } catch {
            // Not registered yet: the archive has it for when it is.
            guard error.refusal == .unknownClient, archive != nil else { throw error }
        }
    }

    private func address(_ token: Data, _ pushType: String) -> DeliveryAddress.APNsAddress {
        DeliveryAddress.APNsAddress(
            pushType: pushType,
            token: token.map { byte in
                let text = String(byte, radix: 16)
                return text.count == 1 ? "0" + text : text
            }.joined(), environment: environment.rawValue)
    }
}
