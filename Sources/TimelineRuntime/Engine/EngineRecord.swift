import WidgetModel

/// The engine's state of one archived item.
struct EngineRecord: Sendable, Equatable {
    struct Build: Sendable, Equatable {
        /// The cursor up to which the build includes every change; `nil` if it was for a
        /// registration that the gateway has since lost.
        var start: Cursor?
        /// The value of ``ReloadEngine/Link/heardSequence`` when the build began: it includes every
        /// change up to that.
        var heardSequence: UInt64?
        /// Whether a notification asked for the build, or arrived since and is covered by it.
        var wasStale: Bool
        /// Whether the gateway has sent every notification that concerns the item since the build
        /// began. It has not for a set that was registered during its build, whose earlier changes
        /// follow.
        let isTold: Bool
        /// Whether a notification has arrived since the build began that it does not cover.
        var isOutdated = false
        /// Whether the lock made the provider's files unreadable at any time since the build began.
        var isOvertaken = false
        /// The reload that the scheduler started; `nil` for a recommendation set.
        let reload: ReloadScheduler.Reload?
    }

    /// The cursor up to which the item includes every change that concerns it; `nil` until it is
    /// registered.
    var cursor: Cursor?
    /// Whether the item was registered and not built since; see
    /// ``EngineState/Position/awaitsBuild``.
    var awaitsBuild = true
    /// The cursor up to which a build that starts now includes every change, whatever notifications
    /// arrived.
    var knownCursor: Cursor?
    /// The highest sequence heard on this connection when the last finished build began.
    var builtSequence: UInt64?
    /// Whether a notification concerns the item, or it was never built, and no build that began
    /// since has ended. Its cursor does not advance while this is so.
    var isStale = true
    /// Whether there is a timeline to show, possibly an old one.
    var hasTimeline = false
    var build: Build?
    /// Whether the item is no longer configured but still being built. The end of that build must
    /// not be mistaken for the end of a later one.
    var isRemoved = false
    var backoff: Backoff?
    /// The earliest time for the next request of a recommendation set that failed; failed timelines
    /// wait in the scheduler.
    var retryAt: Duration?

    var isFresh: Bool { !isStale && build == nil }
}
