import WidgetModel

/// A fixed set of values to choose from (article "Making a configurable widget", "Add a custom app
/// intent to your project").
public protocol AppEnum: IntentValue, RawRepresentable, CaseIterable, Hashable
where RawValue: LosslessStringConvertible {
    /// The display name of the type.
    static var typeDisplayRepresentation: TypeDisplayRepresentation { get }
    /// The display name of each case.
    static var caseDisplayRepresentations: [Self: DisplayRepresentation] { get }
}

extension AppEnum {
    /// The case's raw value as a parameter value.
    public var parameterValue: ParameterValue { .single(rawValue.description) }

    /// Returns the case with the stored raw value.
    ///
    /// - Throws: ``IntentValueError`` when there is none.
    public static func resolved(from value: ParameterValue) throws -> Self {
        try read(value) { RawValue($0).flatMap { Self(rawValue: $0) } }
    }

    /// The raw values of all cases.
    public static var parameterType: ParameterType { .choice(allCases.map(\.rawValue.description)) }

    /// Returns all cases, or with a text those whose title or subtitle contains it.
    public static func options(matching text: String?) -> [ParameterOption]? {
        allCases.map(\.option).matching(text)
    }

    var option: ParameterOption {
        ParameterOption(
            value: parameterValue,
            displayRepresentation: Self.caseDisplayRepresentations[self]
                ?? DisplayRepresentation(title: LocalizedStringResource(rawValue.description)))
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
