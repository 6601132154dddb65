import Foundation
import WidgetViews

/// The state of a toggle in a placed widget, from a person's tap to the resulting timeline (article
/// "Adding interactivity to widgets and Live Activities", "Add a toggle").
///
/// It shows the new state at once, and the state of the timeline that follows `perform()` when that
/// arrives. If the action fails or no timeline arrives within the timeout, it shows the previous
/// state and a reason. It has no clock: the caller passes the time, on any single clock.
public struct ToggleInteraction: Sendable, Equatable {
    /// An order to the caller.
    public enum Action: Sendable, Equatable {
        /// Run the intent's `perform()` for this state, then call `performed` or `failed`.
        case perform(isOn: Bool)
        /// Build the widget's timeline regardless of its budget, then call `rebuilt`.
        case reload
    }

    /// Whether the toggle shows as on.
    public private(set) var isOn: Bool
    /// The reason to show if the last action failed; `nil` otherwise.
    public private(set) var error: String?
    /// The time at which the toggle stops waiting and `woke(now:)` must be called; `nil` while it
    /// does not wait.
    public private(set) var deadline: Date?

    /// The state in the last timeline.
    private var confirmed: Bool
    /// Whether the shown state is a prediction that no timeline has confirmed.
    public private(set) var isOptimistic = false
    /// Whether `perform()` is running, possibly for longer than the timeout.
    private var isPerforming = false
    /// Whether a tap came while `perform()` ran, so that the shown state must be performed next.
    private var isTappedAgain = false
    private let timeout: TimeInterval

    /// Creates a toggle in the state of a timeline.
    ///
    /// - Parameter timeout: The seconds from a tap until the toggle reverts. A later timeline still
    ///   sets its state.
    public init(isOn: Bool, timeout: TimeInterval = 30) {
        self.isOn = isOn
        confirmed = isOn
        self.timeout = timeout
    }

    /// Handles a tap.
    ///
    /// - Throws: The reason why the toggle is inactive in this environment; its state is then
    ///   unchanged.
    public mutating func tap(
        in environment: WidgetEnvironment, now: Date
    ) throws(InteractionRefusal) -> [Action] {
        if let refusal = environment.interactionRefusal { throw refusal }
        isOn.toggle()
        isOptimistic = true
        error = nil
        deadline = now + timeout
        guard !isPerforming else {
            // Performed one at a time; otherwise the earlier action could finish last and decide
            // the outcome.
            isTappedAgain = true
            return []
        }
        isPerforming = true
        return [.perform(isOn: isOn)]
    }

    /// Records that `perform()` returned. The data that the provider reads is now in place.
    public mutating func performed() -> [Action] {
        isPerforming = false
        if isTappedAgain { return performAgain() }
        // If the timeout had passed, the action succeeded after all.
        error = nil
        return [.reload]
    }

    /// Records that `perform()` threw.
    public mutating func failed(_ reason: String) -> [Action] {
        isPerforming = false
        if isTappedAgain { return performAgain() }
        giveUp(reason)
        return [.reload]
    }

    private mutating func performAgain() -> [Action] {
        isTappedAgain = false
        isPerforming = true
        return [.reload, .perform(isOn: isOn)]
    }

    /// Records the state in a new timeline.
    public mutating func rebuilt(isOn truth: Bool) {
        confirmed = truth
        // While the action runs, the timeline may be older than it.
        guard !isPerforming || !isOptimistic else { return }
        isOn = truth
        isOptimistic = false
        deadline = nil
    }

    /// Reverts the toggle if its deadline has passed.
    public mutating func woke(now: Date) -> [Action] {
        guard let deadline, deadline <= now else { return [] }
        isTappedAgain = false
        giveUp("no answer in time")
        return [.reload]
    }

    private mutating func giveUp(_ reason: String) {
        isOn = confirmed
        isOptimistic = false
        error = reason
        deadline = nil
    }
}
