import Foundation
import WidgetModel

/// What placed widgets have spent of their budgets, in a file of its own: it is written whenever
/// something is spent, so that no crash gives a reload back.
extension ClientArchive {
    /// The version of the file's form; another one is not read.
    private static let budgetsVersion: Int64 = 1

    /// What was saved last; nothing when there is nothing that can be read.
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

    /// Replaces the budgets; they are on disk when this returns.
    ///
    /// - Throws: ``Failure``; the budgets are then those saved before.
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
    /// The widget in the files of an archive.
    var archived: JSONObject {
        [
            "kind": .string(kind), "family": .string(family.rawValue),
            "parameters": parametersObject(configuration),
        ]
    }

    /// Reads ``archived``; `nil` for anything else.
    init?(archived object: JSONObject) {
        guard let kind = object["kind"]?.stringValue, let family = object["family"]?.stringValue,
            let configuration = object["parameters"].flatMap(parametersRead)
        else { return nil }
        self.init(
            kind: kind, family: WidgetFamily(rawValue: family), configuration: configuration)
    }
}
