import WidgetModel

/// A change of rows, as a source says it. A column that a row lacks is unknown.
enum RowChange: Sendable, Equatable {
    case insert(JSONObject)
    /// The row before has only what the source says of it.
    case update(from: JSONObject, to: JSONObject)
    case delete(JSONObject)
    /// Every row of the table is gone.
    case truncate

    /// Stands for a value that is stored apart (TOAST), did not change, and is not repeated.
    /// Debezium uses this text.
    static let unchanged: JSONValue = "__debezium_unavailable_value"
}

/// The same as the trigger of an outbox does, see `triggerSQL`; in doubt more is announced.
extension TableMapping {
    /// Returns what a change of a row announces; nothing if no mapped column changed.
    func changes(by change: RowChange) -> [Change] {
        let (gone, new): (Change.Operation, Change.Operation) =
            isPart ? (.update, .update) : (.delete, .insert)
        switch change {
        case .truncate: return [Change(entity: entity, operation: gone, properties: partNames)]
        case .insert(let row): return announcement(of: row, new)
        case .delete(let row): return announcement(of: row, gone)
        case .update(let old, var row):
            for member in row.members where member.value == RowChange.unchanged {
                row[member.name] = old[member.name] ?? RowChange.unchanged
            }
            if Self.known(old, id) != nil, isChanged(id, old, row) {
                return announcement(of: old, gone) + announcement(of: row, new)
            }
            guard let names = changedProperties(old, row) else { return [] }
            return announcement(of: row, .update, names, [old, row])
        }
    }

    private var partNames: [String] { isPart ? Self.unique(properties.map(\.name)) : [] }

    private func announcement(of row: JSONObject, _ operation: Change.Operation) -> [Change] {
        announcement(of: row, operation, partNames, [row])
    }

    /// Announces a change of an entity, or of all where the id is unknown or no scalar; nothing where
    /// it is NULL.
    private func announcement(
        of row: JSONObject, _ operation: Change.Operation, _ properties: [String],
        _ rows: [JSONObject]
    ) -> [Change] {
        let id = Self.known(row, id)
        if case .null? = id { return [] }
        let text = id.flatMap { idForm.text(of: $0) }
        return [
            Change(
                entity: entity, id: text, operation: operation, properties: properties,
                attributes: attributeValues(in: rows))
        ]
    }

    /// Returns the properties that changed, none for all; `nil` if nothing changed that is mapped.
    private func changedProperties(_ old: JSONObject, _ row: JSONObject) -> [String]? {
        guard !properties.isEmpty else {
            return row.members.contains { isChanged($0.name, old, row) } ? [] : nil
        }
        if attributes.contains(where: { isChanged($0.column, old, row) }) { return [] }
        let changed = properties.filter { isChanged($0.column, old, row) }
        return changed.isEmpty ? nil : Self.unique(changed.map(\.name))
    }

    /// Whether a value differs, or may.
    private func isChanged(_ column: String, _ old: JSONObject, _ row: JSONObject) -> Bool {
        guard let value = row[column] else { return true }
        guard value != RowChange.unchanged else { return false }
        switch (Self.known(old, column), value) {
        case (.string(let before)?, .string(let after)): return !before.hasSameBytes(as: after)
        case (let before, let after): return before != after
        }
    }

    /// Returns the values of attributes in each row. One that is NULL or unknown in a row matches
    /// every value, so it is left out.
    private func attributeValues(in rows: [JSONObject]) -> [String: [String]] {
        var values: [String: [String]] = [:]
        for attribute in attributes {
            let texts = rows.compactMap { row in
                Self.known(row, attribute.column).flatMap { attribute.form.text(of: $0) }
            }
            if texts.count == rows.count { values[attribute.name] = Self.unique(texts) }
        }
        return values
    }

    private static func known(_ row: JSONObject, _ column: String) -> JSONValue? {
        guard let value = row[column], value != RowChange.unchanged else { return nil }
        return value
    }

    private static func unique(_ texts: [String]) -> [String] {
        texts.reduce(into: []) { unique, text in
            if !unique.contains(where: text.hasSameBytes) { unique.append(text) }
        }
    }
}
