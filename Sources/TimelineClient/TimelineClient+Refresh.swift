import Foundation
import WidgetModel

/// One pass, for processes that cannot stay: a widget extension, or whatever a push has woken.
extension TimelineClient {
    /// Brings every timeline up to date once: registers what is not registered, asks the gateway what
    /// is stale, builds that and nothing else, and acknowledges it. What is fresh keeps its timeline,
    /// and what is withheld, for its budget or a lock, stays owed.
    ///
    /// - Parameter limit: How long it may take. What is not done by then is done the next time.
    /// - Returns: Whether the gateway was asked; `false` when it could not be, or not in time.
    @discardableResult
    public func refresh(within limit: Duration = .seconds(25)) async -> Bool {
        guard !isRunning, restWaiter == nil else { return isConnected }
        isOnePass = true
        let run = Task { await self.run() }
        let timer = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { self.rest() }
        }
        // The run begins when this waits.
        let wasAsked = await withCheckedContinuation { restWaiter = $0 }
        timer.cancel()
        run.cancel()
        await run.value
        isOnePass = false
        return wasAsked
    }

    /// Whoever waits for a pass to end has waited long enough.
    func rest() {
        restWaiter?.resume(returning: engine?.hasPolled ?? false)
        restWaiter = nil
    }
}
