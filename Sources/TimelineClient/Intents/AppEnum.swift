import WidgetModel

/// A fixed set of values to choose from (article "Making a configurable widget", "Add a custom app
/// intent to your project").
public protocol AppEnum: IntentValue, RawRepresentable, CaseIterable, Hashable
where RawValue == String {
    /// The display name of the type.
    static var typeDisplayRepresentation: TypeDisplayRepresentation { get }
    /// The display name of each case.
    static var caseDisplayRepresentations: [Self: DisplayRepresentation] { get }
}

extension AppEnum {
    /// The case's raw value as a parameter value.
    public var parameterValue: ParameterValue { .single(rawValue) }

    /// Returns the case with the stored raw value.
    ///
    /// - Throws: ``IntentValueError`` when there is none.
    public static func resolved(from value: ParameterValue) throws -> Self {
        guard case .single(let text) = value, let result = Self(rawValue: text) else {
            throw IntentValueError.malformed(
                expected: "one of \(allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return result
    }

    /// The display name of the type.
    public static var typeName: LocalizedStringResource { typeDisplayRepresentation.name }

    /// Returns all cases, or with a text those whose title or subtitle contains it.
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
    /// Returns the options whose title or subtitle contains the text, ignoring case.
    func matching(_ text: String?) -> [ParameterOption] {
        guard let text = text?.lowercased(), !text.isEmpty else { return self }
        return filter { option in
            [option.displayRepresentation.title, option.displayRepresentation.subtitle].contains {
                $0?.text.lowercased().contains(text) ?? false
            }
        }
    }
}
