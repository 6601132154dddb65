/// The topics of a push whose device token APNs says belongs to another app.
package struct TopicMismatch: Sendable, Hashable {
    /// The `apns-topic` of the push.
    package let used: String
    /// The topic that the client registered the address with, if it stated one.
    package let registered: String?

    package init(used: String, registered: String?) {
        self.used = used
        self.registered = registered
    }

    /// The topic that was used, and the one that fits, in a sentence or two for people.
    package var text: String {
        let suffix = used.firstRange(of: ".push-type.").map { used[$0.lowerBound...] } ?? ""
        let bundle = used.dropLast(suffix.count)
        let lead = "The topic was \(used). "
        guard let registered else {
            return lead
                + "A token fits the bundle id of the app that asked for it, which is not \(bundle): "
                + "set `topic` of the app under `apns` to that bundle id, or register tokens of "
                + "\(bundle)."
        }
        let stated =
            registered.hasSuffix(suffix) ? registered.dropLast(suffix.count) : registered[...]
        guard stated != bundle else {
            return lead
                + "The clients registered that topic, too, so their tokens are of another app or push "
                + "type: register the tokens that \(bundle) gets for this push type."
        }
        return lead
            + "The clients registered their tokens for \(stated), so \(stated)\(suffix) fits: set "
            + "`topic` of the app under `apns` to \(stated)."
    }
}
