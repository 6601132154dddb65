import Foundation
import TimelineGatewayClient
import WidgetModel
import WidgetViews

/// An event that the shell reports to the engine.
package enum EngineEvent: Sendable, Equatable {
    /// The run begins, with these timelines in the archive.
    case started(
        [KeptTimeline], lock: DeviceLock = .unlocked, activity: AppActivity = [])
    /// The placed widgets, or another part of the registration, changed.
    case configurationChanged(ClientRegistration)
    /// The registration last sent is in force at the gateway, under this digest. Without a cursor
    /// nothing had to be registered.
    case registered(Cursor?, digest: String? = nil)
    /// The gateway accepted a patch of its registration. If another process or a restored backup
    /// changed the registration in between, its other members are unknown until it is read.
    case patched(Cursor)
    case registrationFailed(Rejection)
    /// The stream or poll of this attempt was answered, resumed from this cursor.
    case opened(attempt: Int, resumedFrom: Cursor?)
    case notification(attempt: Int, ReloadNotification)
    /// A notification failed verification; nothing after it was read.
    case verificationFailed(attempt: Int)
    /// Everything that concerns this client up to this id has been reported.
    case idMoved(attempt: Int, Cursor)
    case retryHint(Duration)
    /// The stream is over, or the poll was read to its end.
    case ended(attempt: Int, Ending)
    /// A timeline was built. Its policy asks for the next one at this date; `nil` for never.
    case rebuilt(WidgetInfo, milliseconds: Int, reloadDate: Date?, isUnchanged: Bool = false)
    case buildFailed(WidgetInfo, reason: String)
    case recommended(kind: String, [RecommendationSet.Item])
    case recommendFailed(kind: String)
    case acknowledged
    case acknowledgementFailed(Rejection)
    /// Timelines must be rebuilt for a reason other than a notification.
    case reloadRequested(ReloadRequest, ReloadReason)
    /// A person used a button or toggle of this widget. Its intent is being performed;
    /// ``interacted(_:at:)`` requests a reload when it has returned.
    case interacting(WidgetInfo)
    /// A person used a button or toggle of this widget, and its intent has returned. Data fetched
    /// from now on includes every change up to the cursor, if there is one.
    case interacted(WidgetInfo, at: Cursor?)
    /// The app requests that every recommendation set is checked again.
    case recommendationsInvalidated
    case activityChanged(AppActivity)
    case lockChanged(DeviceLock)
    /// A timeline was read that the lock had hidden when the run began.
    case unhidden(KeptTimeline)
    case woke

    package struct KeptTimeline: Sendable, Equatable {
        package var widget: WidgetInfo
        /// The date at which its policy asks for the next one; `nil` for never.
        package var reloadDate: Date?
    }

    package enum Rejection: Sendable, Equatable {
        /// 404: the gateway does not know this client.
        case unknownClient
        /// 409: the registration in force is not the one named in the request; this is its digest.
        case otherRegistration(digest: String?)
        /// A retry would fail too, until something else changes.
        case permanent
        /// A retry may succeed, after at least this wait.
        case temporary(retryAfter: Duration?)
    }

    package enum Ending: Sendable, Equatable {
        case polled
        /// A stream was closed by either side, or broke.
        case closed
        /// The request failed before a stream opened.
        case refused(Rejection)
    }
}

package enum ReloadRequest: Sendable, Equatable {
    case all
    case kind(String)
    case timeline(WidgetInfo)
}

/// An order to the shell. Except for the saves and ``build(_:)``, at most one of each is in
/// progress.
package enum EngineAction: Sendable, Equatable {
    /// Register this, in full or only the differences, then report `registered`, `patched` or
    /// `registrationFailed`.
    case register(ClientRegistration)
    /// Read the registration in force, register those parts of this one that it lacks, then report
    /// `registered`, `patched` or `registrationFailed`.
    case reconcile(ClientRegistration)
    /// Open a stream, or poll, from this cursor. Report every event with this attempt and, last,
    /// `ended`.
    case connect(attempt: Int, since: Cursor?)
    /// Ask the provider for this timeline, then report `rebuilt` or `buildFailed`.
    case build(WidgetInfo)
    /// Call `recommendations()` of this kind, then report `recommended` or `recommendFailed`.
    case recommend(kind: String)
    /// Send this acknowledgement, then report `acknowledged` or `acknowledgementFailed`.
    case acknowledge(Acknowledgement)
    /// Write the state to the archive before performing other actions of this batch.
    case save
    /// Write the budgets before performing other actions of this batch, so that a spent reload
    /// stays spent.
    case saveBudgets
}

extension GatewayFailure {
    /// The failure in the engine's terms.
    package var refusal: EngineEvent.Rejection {
        guard case .refused(let problem) = self else { return .temporary(retryAfter: nil) }
        if problem.status == 404 { return .unknownClient }
        if isRegistrationMismatch { return .otherRegistration(digest: problem.digest) }
        guard mayPass else { return .permanent }
        return .temporary(retryAfter: problem.retryAfter.map { .seconds(max(0, $0)) })
    }
}
