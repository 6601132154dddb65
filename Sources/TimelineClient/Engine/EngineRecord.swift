import WidgetModel

/// What an engine knows of one archived thing.
struct EngineRecord: Sendable, Equatable {
    /// A build that is under way.
    struct Build: Sendable, Equatable {
        /// Everything up to here is in it; `nil` when that was for a registration since lost.
        var start: Cursor?
        /// It was asked for by something that the gateway sent, or is the build of something sent
        /// since.
        var wasStale: Bool
        /// What is sent since it began says all that concerns it. A set that is registered while it is
        /// built is told of later what happened before.
        let isTold: Bool
        /// Something sent since it began concerns it.
        var isOutdated = false
        /// The lock took its files away since it began, be it that they are back.
        var isOvertaken = false
        /// What the scheduler started; `nil` for a recommendation set.
        let reload: ReloadScheduler.Reload?
    }

    /// Everything up to here that concerns it is in it; `nil` until it is registered.
    var cursor: Cursor?
    /// See ``EngineState/Position/awaitsBuild``.
    var awaitsBuild = true
    /// A build that starts now has everything up to here, whatever was heard.
    var reached: Cursor?
    /// Something that the gateway sent concerns it, or it was never built, and no build that began
    /// since has ended. Its cursor stays where it is as long.
    var isStale = true
    /// There is a timeline of it to be shown, be it old.
    var hasTimeline = false
    var build: Build?
    /// No longer configured, but a build is under way whose end must not be taken for that of a
    /// later one.
    var isRemoved = false
    /// Of builds that failed in a row.
    var backoff: Backoff?
    /// A recommendation set that failed is not asked for before; timelines wait in the scheduler.
    var retryAt: Duration?

    /// Nothing is to be said of it but what is built in.
    var isFresh: Bool { !isStale && build == nil }
}
