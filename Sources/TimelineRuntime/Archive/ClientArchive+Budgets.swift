import Foundation
import WidgetModel
import WidgetViews

/// The reload budgets of placed widgets, in a separate file that is written after each reload that
/// counts, so that no crash restores a spent reload.
extension ClientArchive {
    /// The version of the file's format. Files of other versions are not read.
    private static let budgetsVersion: Int64 = 1

    /// Returns the budgets saved last; empty when there is no readable file.
    package func loadBudgets(limit: Int?) -> [WidgetInfo: ReloadBudget] {
        guard let object = document(budgetsPath)?.objectValue,
            object["version"]?.integerValue == Self.budgetsVersion
        else { return [:] }
        var budgets: [WidgetInfo: ReloadBudget] = [:]
        for entry in object["budgets"]?.arrayValue ?? [] {
            guard let entry = entry.objectValue, let info = WidgetInfo(archived: entry),
                let budget = entry["spent"].flatMap({ ReloadBudget($0, limit: limit ?? .max) })
            else { continue }
            budgets[info] = budget
        }
        return budgets
    }

    /// Replaces the budgets. They are on disk when this returns. Throws ``Failure``; the budgets
    /// saved before then remain.
    package func saveBudgets(_ budgets: [WidgetInfo: ReloadBudget]) throws(Failure) {
        let entries = budgets.map { info, budget -> (String, JSONValue) in
            var entry = info.archived
            let key = JSONValue.object(entry).text
            entry["spent"] = budget.json
            return (key, .object(entry))
        }
        let document: JSONValue = [
            "version": .integer(Self.budgetsVersion),
            "budgets": .array(entries.sorted { $0.0 < $1.0 }.map(\.1)),
        ]
        try replace(budgetsPath, with: document.serialized)
    }
}

extension WidgetInfo {
    /// The widget as stored in the files of an archive.
    var archived: JSONObject {
        [
            "kind": .string(kind), "family": .string(family.rawValue),
            "parameters": parametersObject(configuration),
        ]
    }

    /// Reads the form that ``archived`` writes. Returns `nil` for anything else.
    init?(archived object: JSONObject) {
        guard let kind = object["kind"]?.stringValue, let family = object["family"]?.stringValue,
            let configuration = object["parameters"].flatMap(parametersRead)
        else { return nil }
        self.init(
            kind: kind, family: WidgetFamily(rawValue: family), configuration: configuration)
    }
}
