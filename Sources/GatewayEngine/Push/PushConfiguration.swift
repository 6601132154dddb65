import GatewayCore
import GatewayPush
import WidgetModel

/// The configuration of pushes.
package struct PushConfiguration: Sendable {
    /// The credential of an app's pushes.
    package enum Credential: Sendable, Hashable {
        /// A key of a team, in PEM, as Apple hands it out (`.p8`).
        case key(team: String, id: String, file: String)
        /// A certificate and its key, in PEM.
        case certificate(file: String, key: String)
    }

    /// One app that is pushed to through APNs.
    package struct App: Sendable {
        /// Its place in the list, by which faults name it.
        package var place: Int
        /// Its bundle id.
        package var app: String
        /// The credential of its pushes.
        package var credential: Credential
        /// The environments that the credential is good for.
        package var environments: [APNsEnvironment]
        /// The fields that its pushes have in common, by type.
        package var forms: [APNsPushType: APNsPushForm]

        package init(
            place: Int, app: String, credential: Credential, environments: [APNsEnvironment],
            forms: [APNsPushType: APNsPushForm]
        ) {
            self.place = place
            self.app = app
            self.credential = credential
            self.environments = environments
            self.forms = forms
        }
    }

    /// The limits of pushes.
    package var terms = PushDesk.Terms()
    /// The apps, each once for each environment.
    package var apps: [App] = []
    /// `HOST:PORT` by environment, instead of Apple's.
    package var hosts: [APNsEnvironment: Address] = [:]
    /// Certificates in PEM to trust at APNs, instead of the system's.
    package var trust: String?
    /// Whether webhooks are asked.
    package var hasWebhooks = false
    /// Ranges of addresses that webhooks may have beside public ones, such as `10.0.0.0/8`.
    package var webhookRanges: [String] = []
    /// Certificates in PEM to trust at webhooks, instead of the system's.
    package var webhookTrust: String?
    /// Open connections to webhooks.
    package var webhookConnectionsMax = 256
    /// Age at which attempts are forgotten, in seconds.
    package var attemptSeconds: Int64 = 7 * 86_400
    /// Most attempts kept.
    package var attemptRows: Int64 = 1_000_000

    /// Whether anything is pushed.
    package var isActive: Bool { hasWebhooks || !apps.isEmpty }

    /// Nothing is pushed.
    package init() {}
}
