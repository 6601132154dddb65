import Foundation
import WidgetModel

/// What happened, as the shell tells the engine.
package enum EngineEvent: Sendable, Equatable {
    /// The run begins, with these timelines in the archive.
    case started(
        [KeptTimeline], lock: DeviceLock = .unlocked, activity: AppActivity = [])
    /// People configured other widgets, or something else of the registration changed.
    case configurationChanged(ClientRegistration)
    /// The gateway has the registration last ordered in force, under this digest. Without a cursor
    /// nothing had to be registered.
    case registered(Cursor?, digest: String? = nil)
    /// The gateway took a patch of its registration. What else is in force, where another process
    /// or a restored backup came in between, is not known until it is read.
    case patched(Cursor)
    /// It did not.
    case registrationFailed(Refusal)
    /// The stream or poll of this attempt is answered, resumed from this cursor.
    case opened(attempt: Int, resumedFrom: Cursor?)
    /// A notification verified.
    case notification(attempt: Int, ReloadNotification)
    /// A notification did not verify; nothing that came after it was read.
    case verificationFailed(attempt: Int)
    /// Everything up to this id that concerns this client has been handed in.
    case idMoved(attempt: Int, Cursor)
    /// The gateway asks for this reconnection time.
    case retryHint(Duration)
    /// The stream is over, or the poll is read to its end.
    case ended(attempt: Int, Ending)
    /// A timeline was built, whose policy asks for the next one at this date; `nil` for never.
    case rebuilt(WidgetInfo, milliseconds: Int, reloadDate: Date?)
    /// A timeline could not be built.
    case buildFailed(WidgetInfo, reason: String)
    /// `recommendations()` of a kind returned this.
    case recommended(kind: String, [RecommendationSet.Item])
    /// It did not.
    case recommendFailed(kind: String)
    /// The gateway took the acknowledgement last ordered.
    case acknowledged
    /// It did not.
    case acknowledgementFailed(Refusal)
    /// Something but the gateway asks for timelines to be rebuilt.
    case reloadRequested(ReloadRequest, ReloadReason)
    /// A person uses a button or toggle of this widget: its intent is being performed, and a reload
    /// will be asked for with ``interacted(_:at:)`` when it returned.
    case interacting(WidgetInfo)
    /// A person used a button or toggle of this widget, and its intent returned. What is fetched from
    /// now on holds every change up to the cursor, if there is one.
    case interacted(WidgetInfo, at: Cursor?)
    /// The app asks for every recommendation set to be looked at again.
    case recommendationsInvalidated
    /// The app does something else than before.
    case activityChanged(AppActivity)
    /// The device was locked or unlocked.
    case lockChanged(DeviceLock)
    /// A timeline that the lock hid when the run began was read.
    case unhidden(KeptTimeline)
    /// The moment of `nextWake` has come.
    case woke

    /// A timeline that an archive kept.
    package struct KeptTimeline: Sendable, Equatable {
        /// Whose it is.
        package var widget: WidgetInfo
        /// When its policy asks for the next one; `nil` for never.
        package var reloadDate: Date?

        /// A timeline.
        package init(widget: WidgetInfo, reloadDate: Date?) {
            self.widget = widget
            self.reloadDate = reloadDate
        }
    }

    /// Why a request had no success.
    package enum Refusal: Sendable, Equatable {
        /// 404: the gateway knows no such client.
        case unknownClient
        /// 409: another registration is in force than was named, under this digest.
        case otherRegistration(digest: String?)
        /// It will be refused again until something else changes.
        case permanent
        /// Another try may succeed, not before this long from now.
        case temporary(retryAfter: Duration?)
    }

    /// How a stream or poll ended.
    package enum Ending: Sendable, Equatable {
        /// A poll was answered.
        case polled
        /// A stream was closed by either side, or broke.
        case closed
        /// It never opened.
        case refused(Refusal)
    }
}

/// Which timelines are wanted rebuilt.
package enum ReloadRequest: Sendable, Equatable {
    /// Every timeline.
    case all
    /// The timelines of a kind.
    case kind(String)
    /// One timeline.
    case timeline(WidgetInfo)
}

/// What the shell has to do. All but the saves and ``build(_:)`` happen at most one at a time.
package enum EngineAction: Sendable, Equatable {
    /// Register this, whole or what is new in it, then report `registered` or `registrationFailed`.
    case register(ClientRegistration)
    /// Read what is in force, register of this what it lacks, then report `registered` or
    /// `registrationFailed`.
    case reconcile(ClientRegistration)
    /// Open a stream, or poll, from this cursor; report everything under this attempt and, last,
    /// `ended`.
    case connect(attempt: Int, since: Cursor?)
    /// Ask the provider for this timeline, then report `rebuilt` or `buildFailed`.
    case build(WidgetInfo)
    /// Call `recommendations()` of this kind, then report `recommended` or `recommendFailed`.
    case recommend(kind: String)
    /// POST this, then report `acknowledged` or `acknowledgementFailed`.
    case acknowledge(Acknowledgement)
    /// Write the state to the archive before anything else of this batch is done.
    case save
    /// Write the budgets before anything else of this batch is done: what is spent stays spent.
    case saveBudgets
}
