/// What one app declares: entities, intents, widget kinds, and what each kind and its
/// recommendations depend on.
///
/// A value of this type is valid: every name it uses is declared, every family fits a platform,
/// every rule is within its bounds.
public struct Catalog: Sendable, Hashable {
    /// The app's bundle id.
    public let app: String
    /// Client attributes that a client may state itself.
    public let selfDeclared: Set<String>
    /// Entity types by name.
    public let entities: [String: EntityDeclaration]
    /// Intents by name.
    public let intents: [String: IntentDeclaration]
    /// Widget and control kinds, in the order declared.
    public let widgets: [WidgetDeclaration]
    /// What is unusual but not wrong.
    public let warnings: [Fault]

    /// The positions of kinds in ``widgets``.
    let widgetPositions: [String: Int]

    /// The declaration of a kind.
    public func widget(kind: String) -> WidgetDeclaration? {
        widgetPositions[kind].map { widgets[$0] }
    }

    /// The intent a kind is configured with, if any.
    public func intent(of widget: WidgetDeclaration) -> IntentDeclaration? {
        widget.intent.flatMap { intents[$0] }
    }
}

/// An entity type: what changes are about.
public struct EntityDeclaration: Sendable, Hashable {
    /// The properties that rules may name.
    public let properties: [String]
}

/// An intent: how a person configures a widget (`WidgetConfigurationIntent`).
public struct IntentDeclaration: Sendable, Hashable {
    /// The title people see.
    public let title: String?
    /// The parameters, in editing order.
    public let parameters: [ParameterDeclaration]

    /// The parameter called `name`.
    public func parameter(_ name: String) -> ParameterDeclaration? {
        parameters.first { $0.name == name }
    }
}

/// One parameter of an intent.
public struct ParameterDeclaration: Sendable, Hashable {
    /// The name rules bind to as `$name`.
    public let name: String
    /// The title people see.
    public let title: String?
    /// What it holds.
    public let type: ParameterType
    /// The literal that stands for a parameter left unset; ``ParameterValue/unset`` when there is
    /// none, and then an unset parameter agrees with every value.
    public let defaultValue: ParameterValue
}

/// What an intent parameter holds.
public struct ParameterType: Sendable, Hashable {
    /// Types that need no declaration.
    public static let builtIn: Set<String> = ["String", "Int", "Double", "Bool", "Date", "AppEnum"]

    /// A built-in type or the name of a declared entity.
    public let name: String
    /// Written `[Name]`: several values.
    public let isArray: Bool

    /// Reads `Name`, `Name?` or `[Name]`; the question mark says nothing here, for every parameter
    /// may be left unset.
    init(_ text: String) {
        var name = text
        if name.hasSuffix("?") { name.removeLast() }
        isArray = name.hasPrefix("[") && name.hasSuffix("]")
        self.name = isArray ? String(name.dropFirst().dropLast()) : name
    }
}

/// How a kind gets its configuration.
public enum WidgetConfigurationType: String, Sendable, CaseIterable {
    /// Nothing to configure (`StaticConfiguration`).
    case `static`
    /// Configured by a person through an intent (`AppIntentConfiguration`).
    case appIntent
    /// Shown by the system when relevant (`RelevanceConfiguration`).
    case relevance
    /// A control in Control Center.
    case control
}

/// One widget kind.
public struct WidgetDeclaration: Sendable, Hashable {
    /// The kind string, byte for byte what the app uses.
    public let kind: String
    /// How it gets its configuration.
    public let configuration: WidgetConfigurationType
    /// The name of its intent; `nil` for static kinds.
    public let intent: String?
    /// The name people see in the gallery.
    public let displayName: String?
    /// The description people see in the gallery.
    public let description: String?
    /// The families it supports; open, for new systems bring new ones.
    public let families: [String]
    /// The platforms it is offered on; empty means all.
    public let platforms: [String]
    /// At most one notification per key in this window, in milliseconds; 0 collapses nothing.
    public let collapseMilliseconds: Int64
    /// What its timelines depend on.
    public let dependsOn: [DependencyRule]
    /// What its recommendation set depends on; `nil` when it declares no recommendations.
    public let recommendations: [DependencyRule]?
}

/// One dependency: changes that hit it make what depends on it stale.
public struct DependencyRule: Sendable, Hashable {
    /// The entity type.
    public let entity: String
    /// What must agree: attribute of the change (`id` is the change's id) and what it is compared
    /// with; sorted by attribute.
    public let match: [Match]
    /// The properties of interest, sorted; empty means all.
    public let properties: [String]
    /// The operations of interest.
    public let operations: Set<Change.Operation>

    /// One binding of a rule.
    public struct Match: Sendable, Hashable {
        /// The change's attribute; `id` is its id.
        public let attribute: String
        /// What it is compared with.
        public let binding: Binding
    }

    /// What an attribute of a change is compared with.
    public enum Binding: Sendable, Hashable {
        /// A fixed value.
        case literal(String)
        /// The widget's value of an intent parameter, written `$name`.
        case parameter(String)
        /// The client's value of an attribute, written `$client.name`.
        case clientAttribute(String)

        /// Reads the written form; `$$` at the start stands for a literal dollar sign.
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
