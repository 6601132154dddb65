import Foundation

/// A gauge that shows a value relative to its bounds. Values outside of them are clamped.
public struct Gauge: PrimitiveView {
    private let fraction: Double
    private let labels: [any View]

    private init(_ value: Double, _ bounds: ClosedRange<Double>, _ labels: [any View]) {
        fraction = clamped(value - bounds.lowerBound, of: bounds.upperBound - bounds.lowerBound)
        self.labels = labels
    }

    /// Creates a gauge with a label.
    public init(
        value: Double, in bounds: ClosedRange<Double> = 0...1, @ViewBuilder label: () -> some View
    ) {
        self.init(value, bounds, [label()])
    }

    /// Creates a gauge with labels of its own and of its value.
    public init(
        value: Double, in bounds: ClosedRange<Double> = 0...1, @ViewBuilder label: () -> some View,
        @ViewBuilder currentValueLabel: () -> some View
    ) {
        self.init(value, bounds, [label(), currentValueLabel()])
    }

    /// Creates a gauge with labels of its own, of its value, and of its bounds.
    public init(
        value: Double, in bounds: ClosedRange<Double> = 0...1, @ViewBuilder label: () -> some View,
        @ViewBuilder currentValueLabel: () -> some View,
        @ViewBuilder minimumValueLabel: () -> some View,
        @ViewBuilder maximumValueLabel: () -> some View
    ) {
        self.init(
            value, bounds,
            [label(), currentValueLabel(), minimumValueLabel(), maximumValueLabel()])
    }

    var nodes: [WidgetNode] { [WidgetNode(.gauge(fraction, label: labels.drawnAsLabel))] }
}

/// Returns the part of a whole, 0 to 1.
func clamped(_ value: Double, of whole: Double = 1) -> Double {
    let part = whole > 0 ? value / whole : 0
    return part.isFinite ? min(max(part, 0), 1) : 0
}

extension [any View] {
    /// The labels of a gauge as a node, the first one alone where there is no other.
    fileprivate var drawnAsLabel: WidgetNode {
        let labels = map { $0.drawnAsOne }
        let isAlone = labels.dropFirst().allSatisfy { $0 == WidgetNode(.stack(.vertical, [])) }
        return isAlone
            ? labels.first ?? WidgetNode(.spacer) : WidgetNode(.stack(.gaugeLabels, labels))
    }
}

/// The progress of something towards its end. It is archived as a gauge.
public struct ProgressView: PrimitiveView {
    private let fraction: Double
    private let labels: [any View]
    private let ownStyle: ProgressViewStyle
    private var style = WidgetStyle()

    private init(_ value: Double?, of total: Double, _ labels: [any View]) {
        fraction = clamped(value ?? 0, of: total)
        self.labels = labels
        ownStyle = value == nil ? .circular : .linear
    }

    /// Creates an indeterminate progress.
    public init() { self.init(nil, of: 1, [EmptyView()]) }
    /// Creates an indeterminate progress with a label.
    public init(@ViewBuilder label: () -> some View) { self.init(nil, of: 1, [label()]) }

    /// Creates a progress; indeterminate if `value` is `nil`.
    public init(value: Double?, total: Double = 1) {
        self.init(value, of: total, [EmptyView()])
    }

    /// Creates a progress with a text as its label.
    public init(_ title: LocalizedStringKey, value: Double?, total: Double = 1) {
        self.init(value, of: total, [Text(title)])
    }

    /// Creates a progress with a label.
    public init(value: Double?, total: Double = 1, @ViewBuilder label: () -> some View) {
        self.init(value, of: total, [label()])
    }

    /// Creates a progress with labels of its own and of its value.
    public init(
        value: Double?, total: Double = 1, @ViewBuilder label: () -> some View,
        @ViewBuilder currentValueLabel: () -> some View
    ) {
        self.init(value, of: total, [label(), currentValueLabel()])
    }

    /// Creates a progress that moves from one date to another while the widget is visible.
    public init(
        timerInterval interval: ClosedRange<Date>, countsDown: Bool = true,
        @ViewBuilder label: () -> some View, @ViewBuilder currentValueLabel: () -> some View
    ) {
        self.init(0, of: 1, [label(), currentValueLabel()])
        style.live(interval, countsDown: countsDown)
    }

    /// Creates a progress that moves from one date to another while the widget is visible, with the
    /// time that is left as its label.
    public init(timerInterval interval: ClosedRange<Date>, countsDown: Bool = true) {
        self.init(
            0, of: 1,
            [EmptyView(), Text(timerInterval: interval, countsDown: countsDown)])
        style.live(interval, countsDown: countsDown)
    }

    var nodes: [WidgetNode] {
        var style = style
        let chosen = ControlStyles.drawn.progress
        style[.progressStyle] = .text((chosen == .automatic ? ownStyle : chosen).rawValue)
        return [WidgetNode(.gauge(fraction, label: labels.drawnAsLabel), style: style)]
    }
}

/// A title with an icon.
public struct Label<Title: View, Icon: View>: PrimitiveView {
    private let title: Title
    private let icon: Icon

    /// Creates a label.
    public init(@ViewBuilder title: () -> Title, @ViewBuilder icon: () -> Icon) {
        self.title = title()
        self.icon = icon()
    }

    var nodes: [WidgetNode] {
        switch ControlStyles.drawn.labels {
        case .automatic, .titleAndIcon:
            [WidgetNode(.stack(.horizontal, icon.drawn + title.drawn))]
        case .titleOnly: title.drawn
        case .iconOnly: icon.drawn
        }
    }
}

extension Label where Title == Text, Icon == Image {
    /// Creates a label with an image that the system provides.
    public init(_ title: LocalizedStringKey, systemImage name: String) {
        (self.title, icon) = (Text(title), Image(systemName: name))
    }

    /// Creates a label with an image that the system provides.
    @_disfavoredOverload
    public init(_ title: some StringProtocol, systemImage name: String) {
        (self.title, icon) = (Text(title), Image(systemName: name))
    }

    /// Creates a label with an image of the app's resources.
    public init(_ title: LocalizedStringKey, image name: String) {
        (self.title, icon) = (Text(title), Image(name))
    }
}

/// A line between the parts of a stack.
public struct Divider: PrimitiveView {
    /// Creates a line.
    public init() {}

    var nodes: [WidgetNode] { [WidgetNode(.shape(Figure(.divider)))] }
}

/// The background that accessory widgets share.
public struct AccessoryWidgetBackground: PrimitiveView {
    /// Creates a background.
    public init() {}

    var nodes: [WidgetNode] { [WidgetNode(.shape(Figure(.accessoryBackground)))] }
}
