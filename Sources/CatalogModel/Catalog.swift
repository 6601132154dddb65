import WidgetModel

/// The declarations of one app: entities, intents, widget kinds, Live Activities, and the
/// dependencies of each of them.
///
/// A value of this type is valid: every name it uses is declared, every family exists on a
/// platform, and every rule is within its limits.
public struct Catalog: Sendable, Hashable {
    /// The app's bundle id.
    public let app: String
    /// The client attributes that clients may state themselves.
    public let selfDeclared: Set<String>
    /// The entity types by name.
    public let entities: [String: EntityDeclaration]
    /// The intents by name.
    public let intents: [String: IntentDeclaration]
    /// The widget and control kinds in the order of their declaration.
    public let widgets: [WidgetDeclaration]
    /// The types of Live Activities in the order of their declaration. A type is not also a kind.
    public let activities: [ActivityDeclaration]
    /// The findings that are unusual but valid.
    public let warnings: [Fault]

    let widgetPositions: [String: Int]

    /// Returns the declaration of a kind; `nil` when it is not declared.
    public func widget(kind: String) -> WidgetDeclaration? {
        widgetPositions[kind].map { widgets[$0] }
    }

    /// Returns the declaration of a type of Live Activities; `nil` when it is not declared.
    public func activity(type: String) -> ActivityDeclaration? {
        activities.first { $0.type == type }
    }

    /// Returns the intent that configures a kind; `nil` when there is none.
    public func intent(of widget: WidgetDeclaration) -> IntentDeclaration? {
        widget.intent.flatMap { intents[$0] }
    }
}

/// An entity type: the subject of changes.
public struct EntityDeclaration: Sendable, Hashable {
    /// The properties that rules may refer to.
    public let properties: [String]
}

/// An intent with the parameters of a widget's configuration (`WidgetConfigurationIntent`).
public struct IntentDeclaration: Sendable, Hashable {
    /// The display title.
    public let title: String?
    /// The parameters in the order in which people edit them.
    public let parameters: [ParameterDeclaration]

    /// Returns the parameter called `name`; `nil` when there is none.
    public func parameter(_ name: String) -> ParameterDeclaration? {
        parameters.first { $0.name == name }
    }
}

/// One parameter of an intent.
public struct ParameterDeclaration: Sendable, Hashable {
    /// The name that rules refer to as `$name`.
    public let name: String
    /// The display title.
    public let title: String?
    /// The type of the parameter's values.
    public let type: ParameterType
    /// The literal for an unset parameter; ``ParameterValue/unset`` when there is none. An unset
    /// parameter then matches every value.
    public let defaultValue: ParameterValue
}

/// The type of an intent parameter.
public struct ParameterType: Sendable, Hashable {
    /// The types that need no declaration.
    public static let builtIn: Set<String> = ["String", "Int", "Double", "Bool", "Date", "AppEnum"]

    /// A built-in type or the name of a declared entity.
    public let name: String
    /// Whether the parameter has several values, written `[Name]`.
    public let isArray: Bool

    /// Returns whether a chosen value can be of the type. Every text can be a `Date`, a case or an
    /// entity here: only the app knows which are.
    public func accepts(_ value: ParameterValue) -> Bool {
        switch value {
        case .unset: return true
        case .single: if isArray { return false }
        case .list: if !isArray { return false }
        }
        return value.texts.allSatisfy { text in
            switch name {
            case "Int": Int(text) != nil
            case "Double": Double(text) != nil
            case "Bool": Bool(text) != nil
            default: true
            }
        }
    }

    /// The type as a catalog writes it: `Name`, or `[Name]` with several values.
    public var text: String { isArray ? "[\(name)]" : name }

    /// Reads `Name`, `Name?` or `[Name]`. The question mark has no effect, because every parameter
    /// may be unset.
    init(_ text: String) {
        var name = text
        if name.hasSuffix("?") { name.removeLast() }
        isArray = name.hasPrefix("[") && name.hasSuffix("]")
        self.name = isArray ? String(name.dropFirst().dropLast()) : name
    }
}

/// The way in which a kind gets its configuration.
public enum WidgetConfigurationType: String, Sendable, CaseIterable {
    /// The kind has no configuration (`StaticConfiguration`).
    case `static`
    /// A person configures the kind with an intent (`AppIntentConfiguration`).
    case appIntent
    /// The system shows the kind when it is relevant (`RelevanceConfiguration`).
    case relevance
    /// The kind is a control in Control Center.
    case control
}

/// One widget kind.
public struct WidgetDeclaration: Sendable, Hashable {
    /// The kind, byte for byte as the app uses it.
    public let kind: String
    /// The way in which the kind gets its configuration.
    public let configuration: WidgetConfigurationType
    /// The name of its intent; `nil` for static kinds.
    public let intent: String?
    /// The display name in the gallery.
    public let displayName: String?
    /// The description in the gallery.
    public let description: String?
    /// The supported families. Unknown names are allowed, because new systems add families.
    public let families: [String]
    /// The platforms on which it is available; empty for all.
    public let platforms: [String]
    /// The collapse window: at most one notification per key in this time, ms; 0 collapses nothing.
    public let collapseMilliseconds: Int64
    /// The rules for its timelines.
    public let dependsOn: [DependencyRule]
    /// The rules for its recommendation set; `nil` when it declares no recommendations.
    public let recommendations: [DependencyRule]?
}

/// A type of Live Activities.
public struct ActivityDeclaration: Sendable, Hashable {
    /// The type, byte for byte as the app's `ActivityAttributes` are called.
    public let type: String
    /// The attributes that rules refer to as `$name`.
    public let attributes: [String]
    /// The rules for its content.
    public let dependsOn: [DependencyRule]
    /// The source of its content.
    public let content: ContentSource
    /// The attributes as the parameters of an intent, for compiling the rules.
    package let intent: IntentDeclaration
}

/// The address in an app's backend that answers what a Live Activity shows now.
public struct ContentSource: Sendable, Hashable {
    /// The https URL.
    public let url: String
    /// Whether one answer is for all activities with the same attributes.
    public let isShared: Bool

    package init(url: String, isShared: Bool = false) {
        self.url = url
        self.isShared = isShared
    }
}

/// A dependency: a change that matches makes the dependent timeline, set or activity stale.
public struct DependencyRule: Sendable, Hashable {
    /// The entity type.
    public let entity: String
    /// The required matches between attributes of the change and bound values, sorted by attribute.
    /// The attribute `id` is the change's id.
    public let match: [Match]
    /// The properties whose changes match, sorted; empty for all.
    public let properties: [String]
    /// The operations that match.
    public let operations: Set<Change.Operation>

    /// One binding of a rule.
    public struct Match: Sendable, Hashable {
        /// The attribute of the change; `id` is the change's id.
        public let attribute: String
        /// The value to compare the attribute with.
        public let binding: Binding
    }

    /// The value that an attribute of a change is compared with.
    public enum Binding: Sendable, Hashable {
        /// A fixed value.
        case literal(String)
        /// The widget's value of an intent parameter, or the activity's of an attribute, written
        /// `$name`.
        case parameter(String)
        /// The client's value of an attribute, written `$client.name`.
        case clientAttribute(String)

        /// Reads the written form. `$$` at the start is a literal dollar sign.
        init?(_ text: String) {
            if text.hasPrefix("$$") {
                self = .literal(String(text.dropFirst()))
            } else if text.hasPrefix("$client.") {
                let name = String(text.dropFirst("$client.".count))
                guard !name.isEmpty else { return nil }
                self = .clientAttribute(name)
            } else if text.hasPrefix("$") {
                let name = String(text.dropFirst())
                guard !name.isEmpty else { return nil }
                self = .parameter(name)
            } else {
                self = .literal(text)
            }
        }
    }
}
