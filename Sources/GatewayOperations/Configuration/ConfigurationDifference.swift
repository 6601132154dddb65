import Foundation
import GatewayDocuments
import GatewayEngine
import GatewaySigning
import WidgetModel

/// What a configuration says, and what is in the files it names: what two configurations differ in.
package struct ConfigurationState: Sendable, Equatable {
    /// The text of every option that is set.
    var texts: [String: String]
    /// The contents of the file an option names; none where it cannot be read.
    var contents: [String: Data]
    /// The list of denied tokens, which is one option here.
    var denied = Denylist()

    package init(texts: [String: String], contents: [String: Data]) {
        self.texts = texts
        self.contents = contents
    }

    /// What a configuration says now.
    package init(_ configuration: GatewayConfiguration) {
        texts = configuration.texts
        contents = configuration.files.compactMapValues {
            FileManager.default.contents(atPath: $0)
        }
        denied = configuration.denied
    }

    /// What became different, ordered by option.
    package func changes(to after: ConfigurationState) -> [ConfigurationChange] {
        Set(texts.keys).union(after.texts.keys).sorted().compactMap { key in
            let (old, new) = (texts[key], after.texts[key])
            let isSame =
                key == "denied" ? denied == after.denied : contents[key] == after.contents[key]
            guard old != new || !isSame else { return nil }
            return ConfigurationChange(key: key, before: old, after: new)
        }
    }
}

/// An option that says something else, or whose file does.
package struct ConfigurationChange: Sendable, Equatable {
    /// The option.
    package let key: String
    /// What it said; `nil` for its default.
    package let before: String?
    /// What it says; the same where only the file's contents are others.
    package let after: String?

    /// Whether a running gateway takes it over.
    package var isLive: Bool { ConfigurationSchema.isLive(key) }

    /// Whether it concerns what is pushed, or with what.
    package var isOfPushes: Bool {
        ["apns.", "push.", "webhooks."].contains { key.hasPrefix($0) }
    }

    /// The change as a document.
    package var document: ChangedOption {
        var document = ChangedOption()
        document.option = key
        document.takesEffect = isLive ? "now" : "at the next start"
        document.contents = before == after ? "changed" : nil
        (document.before, document.after) = (before, after)
        return document
    }
}

extension ConfigurationSchema {
    /// The options, and those below them, that a running gateway takes over.
    private static let live = [
        "tls.certificate", "tls.key", "tls.clientCA", "tls.clientCertificates", "issuers",
        "certificates", "denied", "retention", "apns", "push", "webhooks", "log",
    ]

    /// Whether a running gateway takes over a change of an option.
    static func isLive(_ key: String) -> Bool {
        live.contains { key == $0 || key.hasPrefix($0 + ".") }
    }
}
