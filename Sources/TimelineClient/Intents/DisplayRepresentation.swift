/// A text for display. This library does not translate it; that is up to the app.
public struct LocalizedStringResource: Sendable, Hashable, ExpressibleByStringInterpolation,
    CustomStringConvertible
{
    /// The text.
    public var text: String

    /// Creates a text.
    public init(_ text: String) { self.text = text }

    /// Creates a text from a literal.
    public init(stringLiteral text: String) { self.text = text }

    /// The text.
    public var description: String { text }
}

/// A description of an intent's action, shown where people choose intents.
public struct IntentDescription: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The text of the description.
    public var descriptionText: LocalizedStringResource

    /// Creates a description.
    public init(_ text: LocalizedStringResource) { descriptionText = text }

    /// Creates a description from a literal.
    public init(stringLiteral text: String) { self.init(LocalizedStringResource(text)) }
}

/// A description or an optional one, so that an intent can declare either.
public protocol IntentDescribing: Sendable {
    /// The description; `nil` if there is none.
    var intentDescription: IntentDescription? { get }
}

extension IntentDescription: IntentDescribing {
    /// The description itself.
    public var intentDescription: IntentDescription? { self }
}

extension Optional: IntentDescribing where Wrapped == IntentDescription {
    /// The optional description itself.
    public var intentDescription: IntentDescription? { self }
}

/// The display of a value among several to choose from.
public struct DisplayRepresentation: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// The name of the value.
    public var title: LocalizedStringResource
    /// A second line that distinguishes it from values with similar names.
    public var subtitle: LocalizedStringResource?

    /// Creates a representation.
    public init(title: LocalizedStringResource, subtitle: LocalizedStringResource? = nil) {
        self.title = title
        self.subtitle = subtitle
    }

    /// Creates a representation from the literal of its title.
    public init(stringLiteral title: String) { self.init(title: LocalizedStringResource(title)) }
}

/// The display name of a type of values.
public struct TypeDisplayRepresentation: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// The name of the type.
    public var name: LocalizedStringResource

    /// Creates a representation.
    public init(name: LocalizedStringResource) { self.name = name }

    /// Creates a representation from the literal of its name.
    public init(stringLiteral name: String) { self.init(name: LocalizedStringResource(name)) }
}
