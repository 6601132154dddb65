import Foundation
import GatewayDocuments
import GatewaySigning

/// The options of a configuration and the contents of the files that it names, for comparison.
package struct ConfigurationState: Sendable, Equatable {
    /// The text of every option that is set.
    var texts: [String: String]
    /// The contents of the file that an option names; absent if it cannot be read.
    var contents: [String: Data]
    /// The list of denied tokens, which counts as one option here.
    var denied = Denylist()

    package init(texts: [String: String], contents: [String: Data]) {
        self.texts = texts
        self.contents = contents
    }

    /// The present state of a configuration.
    ///
    /// - Parameter readable: The files that may be read; `nil` for all. The contents of other files
    ///   do not matter: the options that name them differ anyway.
    package init(_ configuration: GatewayConfiguration, readable: Set<String>? = nil) {
        texts = configuration.texts
        contents = configuration.files.compactMapValues { file in
            readable?.contains(file) == false ? nil : ConfigurationFile.contents(of: file)
        }
        denied = configuration.denied
    }

    /// Returns the differences, ordered by option.
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

/// A change of an option's value or of the contents of its file.
package struct ConfigurationChange: Sendable, Equatable {
    package let key: String
    /// The previous value; `nil` for the default.
    package let before: String?
    /// The new value; the same if only the file's contents differ.
    package let after: String?

    /// Whether a running gateway applies the change.
    package var isLive: Bool { ConfigurationSchema.isLive(key) }

    /// Whether the change concerns pushes.
    package var isOfPushes: Bool {
        ["apns.", "webPush.", "fcm.", "push.", "webhooks."].contains { key.hasPrefix($0) }
    }

    package var document: ChangedOption {
        var document = ChangedOption()
        document.option = key
        document.takesEffect = isLive ? "now" : "at the next start"
        document.contents = before == after ? "changed" : nil
        (document.before, document.after) = (before, after)
        return document
    }
}
