/// A text that people read. Here it is the text itself: what translates it is the app's.
public struct LocalizedStringResource: Sendable, Hashable, ExpressibleByStringInterpolation,
    CustomStringConvertible
{
    /// The text.
    public var text: String

    /// A text.
    public init(_ text: String) { self.text = text }

    /// A text, written as a literal.
    public init(stringLiteral text: String) { self.text = text }

    /// The text.
    public var description: String { text }
}

/// What an intent does, for those who choose it.
public struct IntentDescription: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The text.
    public var descriptionText: LocalizedStringResource

    /// A description.
    public init(_ text: LocalizedStringResource) { descriptionText = text }

    /// A description, written as a literal.
    public init(stringLiteral text: String) { self.init(LocalizedStringResource(text)) }
}

/// A description, or none: so that an intent may state one without the optional type.
public protocol IntentDescribing: Sendable {
    /// The description; `nil` for none.
    var intentDescription: IntentDescription? { get }
}

extension IntentDescription: IntentDescribing {
    /// Itself.
    public var intentDescription: IntentDescription? { self }
}

extension Optional: IntentDescribing where Wrapped == IntentDescription {
    /// Itself.
    public var intentDescription: IntentDescription? { self }
}

/// How a value is shown to somebody who chooses among several.
public struct DisplayRepresentation: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// Its name.
    public var title: LocalizedStringResource
    /// What tells it from others of a similar name.
    public var subtitle: LocalizedStringResource?

    /// A representation.
    public init(title: LocalizedStringResource, subtitle: LocalizedStringResource? = nil) {
        self.title = title
        self.subtitle = subtitle
    }

    /// A title, written as a literal.
    public init(stringLiteral title: String) { self.init(title: LocalizedStringResource(title)) }
}

/// How a type of values is called.
public struct TypeDisplayRepresentation: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// Its name.
    public var name: LocalizedStringResource

    /// A representation.
    public init(name: LocalizedStringResource) { self.name = name }

    /// A name, written as a literal.
    public init(stringLiteral name: String) { self.init(name: LocalizedStringResource(name)) }
}
