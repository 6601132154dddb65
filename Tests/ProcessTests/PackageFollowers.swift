import GatewayTestSupport
import WidgetModel

/// A device of a person who follows packages.
struct Follower: Sendable {
    static let app = "org.debian.packages"

    let name: String
    let isWatch: Bool
    /// The packages with a widget of their own.
    let single: [String]
    /// The packages in one widget with a list.
    let list: [String]
    /// The section of its recommendations.
    let section: String?
    /// The recommended packages; `nil` if the app offers no set, empty if people choose.
    let recommended: [String]?
    var token = ""
    var cursor = ""

    /// A device that follows one to five packages, half of them drawn from `updated`; one device of
    /// eight is a watch.
    init(
        _ number: Int, all: [String], updated: [String], sections: [String],
        _ generator: inout SplitMix64
    ) {
        name = "device-\(number)"
        isWatch = number % 8 == 0
        var packages: Set<String> = []
        for _ in 0..<Int.random(in: 1...5, using: &generator) {
            let source = Bool.random(using: &generator) ? all : updated
            if let package = source.randomElement(using: &generator) { packages.insert(package) }
        }
        // Sorted: the order of a set differs from run to run.
        let order = packages.sorted().shuffled(using: &generator)
        let split = Int.random(in: 0...order.count, using: &generator)
        single = Array(order[..<split])
        list = Array(order[split...])
        section = isWatch && number % 16 == 0 ? sections.randomElement(using: &generator) : nil
        recommended = isWatch ? (number % 24 == 0 ? [] : Array(order.prefix(2))) : nil
    }

    /// The number of warnings that its registration is answered with: one if it offers
    /// recommendations and has no section, by which one of their rules finds it.
    var warningCount: Int { recommended?.isEmpty == false && section == nil ? 1 : 0 }

    /// The device's registration.
    var document: JSONValue {
        let family = isWatch ? "accessoryRectangular" : "systemSmall"
        func widget(_ kind: String, _ parameter: String, _ value: JSONValue) -> JSONValue {
            [
                "kind": .string(kind), "family": .string(family), "count": 1,
                "parameters": .object([parameter: value]),
            ]
        }
        var widgets = single.map { widget("package", "package", .string($0)) }
        if !list.isEmpty {
            widgets.append(widget("packages", "packages", .array(list.map { .string($0) })))
        }
        var document: JSONObject = [
            "platform": isWatch ? "watchOS" : "iOS", "osVersion": "26.1",
            "widgets": .array(widgets),
        ]
        if let section { document["attributes"] = ["section": .string(section)] }
        if let recommended {
            let items = recommended.map { package -> JSONValue in
                ["parameters": ["package": .string(package)], "description": .string(package)]
            }
            document["recommendations"] = [["kind": "package", "items": .array(items)]]
        }
        return .object(document)
    }

    static let catalog = """
        app: \(app)
        entities:
          Package: { properties: [version, description] }
        intents:
          OnePackage: { parameters: [{ name: package, type: Package }] }
          SomePackages: { parameters: [{ name: packages, type: "[Package]" }] }
        widgets:
          - kind: package
            configuration: appIntent
            intent: OnePackage
            displayName: Version of a package
            families: [systemSmall, accessoryRectangular]
            platforms: [iOS, watchOS]
            dependsOn:
              - { entity: Package, match: { id: $package }, properties: [version] }
            recommendations:
              dependsOn:
                - { entity: Package, operations: [insert] }
                - { entity: Package, match: { section: $client.section }, properties: [version] }
          - kind: packages
            configuration: appIntent
            intent: SomePackages
            displayName: Versions of packages
            families: [systemSmall, accessoryRectangular]
            platforms: [iOS, watchOS]
            dependsOn:
              - { entity: Package, match: { id: $packages }, properties: [version] }
        """
}

/// A change of one package, as the repository's robot would post it.
struct PackageChange: Sendable {
    let package: String
    let section: String
    /// Whether the package is not in the distribution but came with a security update.
    let isNew: Bool
    /// Whether the version differs; otherwise the change names only the description.
    let hasNewVersion: Bool

    /// Returns every package of the security list, ordered by name.
    static func all(_ lists: PackageLists) -> [PackageChange] {
        lists.security.sorted { $0.key < $1.key }.map { name, entry in
            let known = lists.main[name]
            return PackageChange(
                package: name, section: entry.section, isNew: known == nil,
                hasNewVersion: known?.version != entry.version)
        }
    }

    var json: JSONValue {
        [
            "specversion": "1.0", "type": "package.changed", "source": "/debian/security",
            "id": .string(package),
            "data": [
                "entity": "Package", "id": .string(package),
                "operation": isNew ? "insert" : "update",
                "properties": [hasNewVersion ? "version" : "description"],
                "attributes": ["section": .string(section)],
            ],
        ]
    }
}

/// Determines the expected notifications in a few lines and without an index.
///
/// - Returns: For each device the names of its stale content.
func expectedNotifications(
    _ changes: [PackageChange], _ followers: [Follower]
) -> [String: Set<String>] {
    var expected: [String: Set<String>] = [:]
    let changed = Set(changes.filter(\.hasNewVersion).map(\.package))
    let sections = Set(changes.filter(\.hasNewVersion).map(\.section))
    let hasNew = changes.contains { $0.isNew }
    for follower in followers {
        var names: Set<String> = []
        for package in follower.single where changed.contains(package) {
            names.insert("package package=\(package)")
        }
        for package in follower.list where changed.contains(package) {
            names.insert("packages packages=\(package)")
        }
        if follower.recommended?.isEmpty == false {
            if hasNew || follower.section.map(sections.contains) == true {
                names.insert("recommendations package")
            }
        }
        expected[follower.name] = names
    }
    return expected
}

/// Returns the names in a notification, in the format of ``expectedNotifications(_:_:)``.
func names(in notification: ReloadNotification) -> [String] {
    var names = notification.reload.map { entry in
        entry.parameters.reduce(entry.kind) { $0 + " \($1.name)=\($1.value ?? "unset")" }
    }
    names += notification.recommendations.map { "recommendations \($0)" }
    names += (notification.relevance + notification.controls).map { "unexpected \($0)" }
    if notification.all { names.append("everything") }
    return names
}
