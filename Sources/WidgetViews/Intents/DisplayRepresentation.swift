import Foundation

/// A description of an intent's action, shown where people choose intents.
public struct IntentDescription: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The text of the description.
    public var descriptionText: LocalizedStringResource
    /// The group in which the intent is listed.
    public var categoryName: LocalizedStringResource?

    /// Creates a description.
    public init(_ text: LocalizedStringResource, categoryName: LocalizedStringResource? = nil) {
        descriptionText = text
        self.categoryName = categoryName
    }

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
    /// A picture beside the name.
    public var image: Image?

    /// A picture of a value.
    public struct Image: Sendable, Hashable {
        /// The name of the picture, or its address.
        public let name: String
        /// Whether the system provides the picture.
        public let isSystem: Bool

        /// Creates a picture of the app's resources.
        public init(named name: String) { (self.name, isSystem) = (name, false) }
        /// Creates a picture that the system provides.
        public init(systemName name: String) { (self.name, isSystem) = (name, true) }
        /// Creates a picture at an address.
        public init(url: URL) { self.init(named: url.absoluteString) }
    }

    /// Creates a representation.
    public init(
        title: LocalizedStringResource, subtitle: LocalizedStringResource? = nil,
        image: Image? = nil
    ) {
        self.title = title
        self.subtitle = subtitle
        self.image = image
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
