import GatewayCore
import WidgetModel

package struct PushConfiguration: Sendable {
    /// The credential of an app's pushes.
    package enum Credential: Sendable, Hashable {
        /// A team's key, in PEM, as issued by Apple (`.p8`).
        case key(team: String, id: String, file: String)
        /// A certificate and its key, in PEM.
        case certificate(file: String, key: String)
    }

    /// An app with pushes through APNs.
    package struct App: Sendable {
        /// Its index in the list, which names it in faults.
        package var place: Int
        /// Its bundle id.
        package var app: String
        package var credential: Credential
        /// The environments in which the credential is valid.
        package var environments: [APNsEnvironment]
        /// The fields common to its pushes, by type.
        package var forms: [APNsPushType: APNsPushForm]
    }

    /// An app with Web Push.
    package struct WebPushApp: Sendable {
        /// Its index in the list, which names it in faults.
        package var place: Int
        package var app: String
        /// The file of its key, in PEM.
        package var key: String
        /// A `mailto:` or `https:` URL of its operator.
        package var subject: String
    }

    /// An app with pushes through FCM.
    package struct FCMApp: Sendable {
        /// Its index in the list, which names it in faults.
        package var place: Int
        package var app: String
        /// The file of its service account, in JSON.
        package var file: String
    }

    package var terms = PushScheduler.Terms()
    /// The apps, each once for each environment.
    package var apps: [App] = []
    /// `HOST:PORT` by environment, instead of Apple's.
    package var hosts: [APNsEnvironment: Address] = [:]
    /// Certificates in PEM to trust at APNs, instead of the system's.
    package var trust: String?
    package var webPush: [WebPushApp] = []
    package var fcm: [FCMApp] = []
    /// `HOST:PORT`, instead of Google's.
    package var fcmHost: Address?
    /// Address ranges allowed for browsers' push services and FCM in addition to public ones.
    package var serviceRanges: [String] = []
    /// Certificates in PEM to trust at browsers' push services and FCM, instead of the system's.
    package var serviceTrust: String?
    package var hasWebhooks = false
    /// Address ranges allowed for webhooks in addition to public ones, such as `10.0.0.0/8`.
    package var webhookRanges: [String] = []
    /// Certificates in PEM to trust at webhooks, instead of the system's.
    package var webhookTrust: String?
    package var attemptSeconds: Int64 = 7 * 86_400
    package var attemptRows: Int64 = 1_000_000

    package var isActive: Bool { hasWebhooks || !apps.isEmpty || !webPush.isEmpty || !fcm.isEmpty }

    package init() {}
}
