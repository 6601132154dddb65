import CatalogModel
import Foundation
import WidgetModel

/// The sample everything is tried with: the character game of the quick start.
public enum CharacterGame {
    /// The app's bundle id.
    public static let app = "com.mygame"
    /// The configurable widget's kind.
    public static let detail = "com.mygame.character-detail"
    /// The static widget's kind.
    public static let status = "com.mygame.game-status"

    /// Where the catalog stands, beside the sources.
    public static let catalogPath = #filePath.replacing(
        "Sources/GatewayTestSupport/CharacterGame.swift", with: "Deploy/sample/catalog.yaml")

    /// The catalog as a backend puts it; empty where the sources are not.
    public static let catalogYAML =
        (try? String(contentsOfFile: catalogPath, encoding: .utf8)) ?? ""

    /// The catalog, read.
    public static func catalog() throws -> Catalog {
        try Catalog(JSONValue(yaml: catalogYAML), app: app, limits: Limits())
    }

    /// A widget that shows one character, or none chosen.
    public static func widget(_ character: String?) -> ConfiguredWidget {
        ConfiguredWidget(
            kind: detail, family: "systemSmall",
            parameters: ["character": character.map { .single($0) } ?? .unset])
    }

    /// A change to a character.
    public static func change(
        _ character: String?, _ properties: [String] = ["healthLevel"]
    ) -> Change {
        Change(entity: "CharacterDetail", id: character, properties: properties)
    }
}
