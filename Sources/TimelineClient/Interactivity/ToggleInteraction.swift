import Foundation

/// A toggle of a placed widget, from a person's tap to the server's word (article "Adding
/// interactivity to widgets and Live Activities", "Add a toggle").
///
/// It shows the new state at once; the true one when the timeline that follows `perform()` says it;
/// and the state it had before, with a reason, when the action fails or nothing is heard in time. A
/// value without clock: the caller hands in the moments, of any one clock.
public struct ToggleInteraction: Sendable, Equatable {
    /// What to do now.
    public enum Action: Sendable, Equatable {
        /// Run the intent's `perform()` for this state, then report `performed` or `failed`.
        case perform(isOn: Bool)
        /// Build the widget's timeline, whatever its budget, then report `rebuilt`.
        case reload
    }

    /// Whether the toggle shows as on.
    public private(set) var isOn: Bool
    /// What is to be shown beside it because the last action had no success; `nil` otherwise.
    public private(set) var error: String?
    /// When it gives up waiting; `nil` while it waits for nothing. To be told by `woke(now:)`.
    public private(set) var deadline: Date?

    /// The last state that a timeline said.
    private var confirmed: Bool
    /// What is shown is a prediction that nobody has confirmed.
    public private(set) var isOptimistic = false
    /// `perform()` runs, perhaps longer than anybody waits for it.
    private var isPerforming = false
    /// A tap came while `perform()` ran: the shown state is to be performed next.
    private var isTappedAgain = false
    private let timeout: TimeInterval

    /// A toggle in a state that a timeline says.
    ///
    /// - Parameter timeout: Seconds from a tap to giving up; what comes later is taken as the
    ///   timeline's word all the same.
    public init(isOn: Bool, timeout: TimeInterval = 30) {
        self.isOn = isOn
        confirmed = isOn
        self.timeout = timeout
    }

    /// A person taps it.
    ///
    /// - Throws: Why it does nothing in this environment; it is as before then.
    public mutating func tap(
        in environment: WidgetEnvironment, now: Date
    ) throws(InteractionRefusal) -> [Action] {
        if let refusal = environment.interactionRefusal { throw refusal }
        isOn.toggle()
        isOptimistic = true
        error = nil
        deadline = now + timeout
        guard !isPerforming else {
            // One at a time: otherwise the earlier could end as the later one's outcome.
            isTappedAgain = true
            return []
        }
        isPerforming = true
        return [.perform(isOn: isOn)]
    }

    /// `perform()` returned: what the provider reads is in its place.
    public mutating func performed() -> [Action] {
        isPerforming = false
        if isTappedAgain { return performAgain() }
        // Where nobody waited any longer, it had success after all.
        error = nil
        return [.reload]
    }

    /// `perform()` threw.
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

    /// A timeline says this.
    public mutating func rebuilt(isOn truth: Bool) {
        confirmed = truth
        // While the action runs, what a timeline says may be older than it.
        guard !isPerforming || !isOptimistic else { return }
        isOn = truth
        isOptimistic = false
        deadline = nil
    }

    /// Time has passed.
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
