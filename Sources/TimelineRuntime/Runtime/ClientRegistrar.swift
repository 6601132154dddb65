import Foundation
import TimelineGatewayClient
import WidgetModel

/// Registers the part of a client's registration that one process of an app knows.
///
/// An app has several such processes: the app itself, whose ``TimelineClient`` registers widgets
/// and recommendation sets, and push handlers, which know only tokens. Each changes its own part of
/// the registration (a merge patch, RFC 7396), in any order. Before the client is registered, its
/// part is stored in the archive and registered together with the rest.
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

    /// Creates a registrar for one client.
    ///
    /// - Parameters:
    ///   - otherDelivery: The client's other addresses, as in its ``TimelineClientConfiguration``.
    ///   - archive: Stores the addresses until the client is registered.
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

    /// Registers a new push token of the widgets. For use by a ``WidgetPushHandler``.
    ///
    /// - Returns: The gateway's warnings, such as a kind that the catalog does not declare.
    /// - Throws: ``GatewayFailure``. The token is registered with the next change, or when the
    ///   caller retries.
    @discardableResult
    public func register(_ pushInfo: WidgetPushInfo) async throws(GatewayFailure) -> [Fault] {
        let address = DeliveryAddress.push(
            .widgets, token: pushInfo.token, environment: environment.rawValue)
        try? archive?.save(push: [address])
        let registration = ClientRegistration(platform: "", delivery: otherDelivery + [address])
        return try await patch("delivery", of: registration)
    }

    /// Registers new push tokens of the controls. For use by a ``ControlPushHandler``.
    ///
    /// - Returns: The gateway's warnings, such as a kind that the catalog does not declare.
    /// - Throws: ``GatewayFailure``.
    @discardableResult
    public func register(_ controls: [ControlInfo]) async throws(GatewayFailure) -> [Fault] {
        let placed = controls.map { control in
            PlacedControl(
                kind: control.kind, id: control.id, parameters: control.configuration,
                delivery: control.pushInfo.map {
                    .push(.controls, token: $0.token, environment: environment.rawValue)
                })
        }
        try? archive?.save(controls: placed)
        return try await patch("controls", of: ClientRegistration(platform: "", controls: placed))
    }

    private func patch(
        _ member: String, of registration: ClientRegistration
    ) async throws(GatewayFailure) -> [Fault] {
        let document = registration.json(maskingTokens: false).objectValue
        var patch = JSONObject()
        patch[member] = document?[member] ?? .null
        do throws(GatewayFailure) {
            return try await service.patch(.object(patch), client: client).value.warnings
        } catch {
            // The client is not registered yet; the archive keeps the part until it is.
            guard error.refusal == .unknownClient, archive != nil else { throw error }
            return []
        }
    }
}
