/// A single pass, for processes that cannot stay alive: a widget extension, or a process woken by a
/// push.
extension TimelineClient {
    /// Brings every timeline up to date once: registers pending changes, asks the gateway what is
    /// stale, rebuilds only that, and acknowledges it. Fresh timelines stay; those withheld because
    /// of a budget or a lock remain pending.
    ///
    /// - Parameter limit: The time limit. Work that is unfinished then is done in the next pass.
    /// - Returns: Whether the gateway answered in time.
    @discardableResult
    public func refresh(within limit: Duration = .seconds(25)) async -> Bool {
        guard !isRunning, restWaiter == nil else { return isConnected }
        isOnePass = true
        let run = Task { await self.run() }
        let timer = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { self.rest() }
        }
        // The run cannot begin before this suspends: both run on this actor.
        let wasAsked = await withCheckedContinuation { restWaiter = $0 }
        timer.cancel()
        run.cancel()
        await run.value
        isOnePass = false
        return wasAsked
    }

    /// Resumes the caller that waits for the end of a pass.
    func rest() {
        restWaiter?.resume(returning: engine?.link.hasPolled ?? false)
        restWaiter = nil
    }
}
