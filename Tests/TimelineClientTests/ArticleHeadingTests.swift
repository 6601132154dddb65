import Foundation
import Testing

/// Every heading of the five articles that says what widgets do has tests under its own name.
@Suite struct ArticleHeadingTests {
    /// The headings of each article; two of the five are the same article.
    private static let headings: [String: [String]] = [
        "Making a configurable widget": [
            "Add a custom app intent to your project",
            "Implement a query to provide dynamic values",
            "Handle customized values in your widget",
            "Access customized values in your app",
            "Offer configurable widgets and complications on Apple Watch",
        ],
        "Adding interactivity to widgets and Live Activities": [
            "Review widgets that support interactive views",
            "Support interactive widgets in CarPlay",
            "Understand the role of app intents",
            "Add an app intent that performs the action",
            "Implement the perform function",
            "Add a button",
            "Add a toggle",
            "Review interactions in iPhone widgets on Mac",
        ],
        "Creating a widget extension": [
            "Add a widget target to your app",
            "Add configuration details",
            "Provide timeline entries",
            "Generate a preview for the widget gallery",
            "Display content in your widget",
            "Display a placeholder widget",
            "Hide sensitive content",
            "Add dynamic content to your widget",
            "Respond to user interactions",
            "Preview widgets in Xcode",
            "Expand your widget’s capabilities",
            "Create multiple widget extensions",
        ],
        "Preparing widgets for additional platforms, contexts, and appearances": [
            "Make your background views removable",
            "Support Always On",
            "Update your small widget to support StandBy and CarPlay",
            "Indicate that a widget might not fit a specific context",
            "Verify font sizes in macOS",
        ],
    ]

    @Test func everyHeadingHasItsSuite() throws {
        let directory = URL(filePath: #filePath).deletingLastPathComponent()
        let sources = try FileManager.default.contentsOfDirectory(
            at: directory, includingPropertiesForKeys: nil
        ).filter { $0.pathExtension == "swift" }
            .map { try String(contentsOf: $0, encoding: .utf8) }.joined()
        for (article, headings) in Self.headings {
            for title in [article] + headings {
                #expect(sources.contains("@Suite(\"\(title)\""), "\(article): \(title)")
            }
        }
    }
}
