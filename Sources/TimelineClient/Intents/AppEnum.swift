import WidgetModel

/// A fixed list of values that somebody may choose from (article "Making a configurable widget", "Add
/// a custom app intent to your project").
public protocol AppEnum: IntentValue, RawRepresentable, CaseIterable, Hashable
where RawValue == String {
    /// How the type is called.
    static var typeDisplayRepresentation: TypeDisplayRepresentation { get }
    /// How its cases are shown.
    static var caseDisplayRepresentations: [Self: DisplayRepresentation] { get }
}

extension AppEnum {
    /// The case's raw value.
    public var parameterValue: ParameterValue { .single(rawValue) }

    /// The case with this raw value.
    ///
    /// - Throws: ``IntentValueError`` when there is none.
    public static func resolved(from value: ParameterValue) throws -> Self {
        guard case .single(let text) = value, let result = Self(rawValue: text) else {
            throw IntentValueError.malformed(
                expected: "one of \(allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return result
    }

    /// The type's display name.
    public static var typeName: LocalizedStringResource { typeDisplayRepresentation.name }

    /// All cases; those whose title has the text, if there is one.
    public static func options(matching text: String?) -> [ParameterOption]? {
        allCases.map {
            ParameterOption(
                value: $0.parameterValue,
                displayRepresentation: caseDisplayRepresentations[$0]
                    ?? DisplayRepresentation(title: LocalizedStringResource($0.rawValue)))
        }.matching(text)
    }
}

extension [ParameterOption] {
    /// Those whose title or subtitle has the text, whatever its case.
    func matching(_ text: String?) -> [ParameterOption] {
        guard let text = text?.lowercased(), !text.isEmpty else { return self }
        return filter { option in
            [option.displayRepresentation.title, option.displayRepresentation.subtitle].contains {
                $0?.text.lowercased().contains(text) ?? false
            }
        }
    }
}
