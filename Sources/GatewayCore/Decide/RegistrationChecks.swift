import CatalogModel
import WidgetModel

/// The checks of a registration against a catalog.
extension RuleSet {
    /// The limit of combinations of one widget's list values, whatever the catalog binds: a later
    /// catalog may bind more than the current one.
    static let combinationsMax = 4_096

    /// Returns the faults of a registration: more keys than one widget or one client may depend on.
    package func faults(in record: ClientRecord, limits: Limits) -> Faults {
        var faults = Faults()
        let attributes = record.attributes.values.reduce(1) { Self.product($0, $1.count) }
        func checkLists(
            _ parameters: [String: ParameterValue], _ place: @autoclosure () -> String
        ) {
            let count = parameters.values.reduce(attributes) {
                Self.product($0, max(1, $1.texts.count))
            }
            if count > Self.combinationsMax {
                faults.add(
                    place(),
                    "has lists (with the client's attributes) of \(count) combinations; at most "
                        + "\(Self.combinationsMax) are allowed")
            }
        }
        var total = 0
        func count(
            _ kind: String, _ parameters: [String: ParameterValue],
            _ place: @autoclosure () -> String, sets: Bool
        ) {
            checkLists(parameters, place())
            var keys = 0
            for slot in slots(ofKind: kind) where (rules[slot].target == .recommendations) == sets {
                let combinations = rules[slot].combinations(
                    parameters: parameters, attributes: record.attributes)
                keys =
                    keys.addingReportingOverflow(combinations).overflow
                    ? Int.max : keys + combinations
            }
            if keys > limits.widgetKeysMax {
                faults.add(
                    place(),
                    "depends on \(keys) keys; at most \(limits.widgetKeysMax) are allowed")
            }
            total = min(Int.max / 2, total + min(keys, limits.clientKeysMax + 1))
        }
        for (index, widget) in record.registration.widgets.enumerated() {
            count(widget.kind, widget.parameters, "widgets[\(index)]", sets: false)
        }
        for (index, control) in record.registration.controls.enumerated() {
            count(control.kind, control.parameters, "controls[\(index)]", sets: false)
        }
        for (index, activity) in record.registration.activities.enumerated() {
            count(activity.type, activity.attributes, "activities[\(index)]", sets: false)
        }
        for (index, set) in record.registration.recommendations.enumerated() {
            for (place, item) in set.items.enumerated() {
                count(
                    set.kind, item.parameters, "recommendations[\(index)].items[\(place)]",
                    sets: true)
            }
        }
        if total > limits.clientKeysMax {
            faults.add(
                "widgets",
                "depend, with controls, recommendations and activities, on more than "
                    + "\(limits.clientKeysMax) keys in total; register fewer")
        }
        return faults
    }

    private static func product(_ left: Int, _ right: Int) -> Int {
        let (product, overflow) = left.multipliedReportingOverflow(by: right)
        return overflow ? Int.max : product
    }

    /// Adds warnings about parts that the catalog does not declare; the rest of the registration is
    /// in force.
    package func addWarnings(about record: ClientRecord, to warnings: inout Faults) {
        let registration = record.registration
        for (index, widget) in registration.widgets.enumerated() {
            addWarnings(
                kind: widget.kind, parameters: widget.parameters, family: widget.family,
                at: "widgets[\(index)]", record, isControl: false, to: &warnings)
        }
        for (index, control) in registration.controls.enumerated() {
            addWarnings(
                kind: control.kind, parameters: control.parameters, family: nil,
                at: "controls[\(index)]", record, isControl: true, to: &warnings)
        }
        for (index, set) in registration.recommendations.enumerated() {
            addWarnings(about: set, at: "recommendations[\(index)]", record, to: &warnings)
        }
        for (index, activity) in registration.activities.enumerated() {
            let place = "activities[\(index)]"
            guard let declared = declaredActivity(activity.type, at: place, &warnings) else {
                continue
            }
            for name in activity.attributes.keys.sorted()
            where !declared.attributes.contains(name) {
                warnings.add(
                    "\(place).attributes.\(name)", "is not an attribute that the catalog declares",
                    hint: name, among: declared.attributes)
            }
            addWarnings(
                aboutAttributesFor: attributeNeeds(ofKind: activity.type, sets: false), of: record,
                at: place, to: &warnings)
        }
        for (index, start) in registration.activityStarts.enumerated() {
            _ = declaredActivity(start.type, at: "activityStarts[\(index)]", &warnings)
        }
    }

    /// Returns the declaration of a type of activities; adds a warning if there is none.
    private func declaredActivity(
        _ type: String, at place: String, _ warnings: inout Faults
    ) -> ActivityDeclaration? {
        let declared = catalog.activity(type: type)
        if declared == nil {
            warnings.add(
                "\(place).type", "is not in the catalog and is inactive", hint: type,
                among: catalog.activities.lazy.map(\.type))
        }
        return declared
    }

    private func addWarnings(
        kind: String, parameters: [String: ParameterValue], family: String?,
        at place: @autoclosure () -> String, _ record: ClientRecord, isControl: Bool,
        to warnings: inout Faults
    ) {
        guard let widget = catalog.widget(kind: kind) else {
            return warnings.add(
                "\(place()).kind", "is not in the catalog and is inactive", hint: kind,
                among: catalog.widgets.lazy.map(\.kind))
        }
        if isControl != (widget.configuration == .control) {
            warnings.add(
                "\(place()).kind",
                isControl ? "is not a control and is inactive" : "is a control and is inactive")
        }
        if let family, !widget.families.isEmpty, !widget.families.contains(family) {
            warnings.add("\(place()).family", "is not among the families the catalog declares")
        }
        if !WidgetFamilies.isOffered(on: record.registration.platform, declared: widget.platforms) {
            warnings.add(
                place(), "is not declared for the platform \(record.registration.platform)")
        }
        addWarnings(aboutValues: parameters, of: widget, at: place(), to: &warnings)
        addWarnings(
            aboutAttributesFor: attributeNeeds(ofKind: kind, sets: false), of: record,
            at: place(), to: &warnings)
    }

    private func addWarnings(
        aboutValues values: [String: ParameterValue], of widget: WidgetDeclaration,
        at place: @autoclosure () -> String, to warnings: inout Faults
    ) {
        let intent = catalog.intent(of: widget)
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            let type = intent?.parameter(name)?.type
            guard type?.accepts(value) != true else { continue }
            warnings.add(
                "\(place()).parameters.\(name)",
                type.map { "is not of the type `\($0.text)` that the catalog declares" }
                    ?? "is not a parameter of the kind's intent")
        }
    }

    private func addWarnings(
        aboutAttributesFor needs: AttributeNeeds, of record: ClientRecord,
        at place: @autoclosure () -> String, to warnings: inout Faults
    ) {
        let isWhole = needs.areLacking(in: record.attributes)
        for name in needs.lacked(by: record.attributes) {
            warnings.add(
                place(),
                "the client has no attribute `\(name)`: rules that bind to it do not apply"
                    + (isWhole ? ", so no change makes this stale" : ""),
                hint: name, among: record.attributes.keys.sorted(),
                question: "; did you misspell it as")
        }
    }

    private func addWarnings(
        about set: RecommendationSet, at place: String, _ record: ClientRecord,
        to warnings: inout Faults
    ) {
        let registration = record.registration
        guard let widget = catalog.widget(kind: set.kind) else {
            return warnings.add(
                "\(place).kind", "is not in the catalog and is inactive", hint: set.kind,
                among: catalog.widgets.lazy.map(\.kind))
        }
        if widget.recommendations == nil {
            warnings.add(place, "the kind declares no recommendations in the catalog")
        }
        if set.items.isEmpty, registration.platform == "watchOS",
            let version = registration.osVersion, let first = version.parts.first, first <= 11
        {
            warnings.add(
                "\(place).items",
                "is empty, but watchOS 11 and older have no interface to configure widgets")
        }
        for (index, item) in set.items.enumerated() {
            addWarnings(
                aboutValues: item.parameters, of: widget, at: "\(place).items[\(index)]",
                to: &warnings)
        }
        // An empty set causes no notification.
        guard !set.items.isEmpty else { return }
        addWarnings(
            aboutAttributesFor: attributeNeeds(ofKind: set.kind, sets: true), of: record,
            at: place, to: &warnings)
    }
}
