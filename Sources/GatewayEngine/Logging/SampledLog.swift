import GatewayCore
import Logging
import Synchronization

/// A kind of event that peers can cause as often as they like, by its log message.
package enum SampledEvent: String, Sendable {
    case rejectedToken = "a token was rejected"
    case failedHandshake = "a TLS handshake failed"
    case endedConnection = "a connection or a request was ended because of its peer"
    case refusedConnection = "connections are closed or wait at a limit"
    case malformedForwarded = "a proxy sent a malformed Forwarded field"
    case unavailable = "a request was answered with 503"
    case rateLimit = "requests exceed a rate"
    case replacedStream = "a stream or poll was ended for a newer one of its client"
    case failingPush = "pushes to a client begin to fail"
    case succeedingPush = "pushes to a client succeed again"
    case pushAlert = "pushes need an operator"
    case catalog = "a catalog is in force"

    fileprivate var level: Logger.Level { self == .pushAlert ? .error : .info }
}

/// Logs events that peers can cause as often as they like: the first few of each kind and subject
/// in a minute, and then how many more there were.
package final class SampledLog: Sendable {
    private struct Subject: Hashable {
        let event: SampledEvent
        let name: String
    }

    private let logger: Logger
    private let sampler = Mutex(LogSampler<Subject>())
    /// Monotonic milliseconds.
    private let now: @Sendable () -> Int64

    /// Creates a log.
    ///
    /// - Parameter now: Returns monotonic milliseconds.
    package init(_ logger: Logger, now: @escaping @Sendable () -> Int64) {
        self.logger = logger
        self.now = now
    }

    /// Logs something at debug, however often it happens: who asks for that level wants all of it.
    package func debug(
        _ message: @autoclosure () -> Logger.Message,
        _ metadata: @autoclosure () -> Logger.Metadata
    ) {
        logger.debug(message(), metadata: metadata())
    }

    /// Logs an event of a subject, such as an address, unless there were too many: at error if it
    /// needs an operator, else at info.
    package func log(
        _ event: SampledEvent, of subject: String, _ metadata: @autoclosure () -> Logger.Metadata
    ) {
        guard logger.logLevel <= event.level else { return }
        let now = now()
        let isLogged = sampler.withLock {
            $0.admits(Subject(event: event, name: subject), now: now)
        }
        guard isLogged else { return }
        logger.log(level: event.level, "\(event.rawValue)", metadata: metadata())
    }

    /// Logs for each subject whose minute is over how many of its events were left out since its
    /// last summary.
    ///
    /// - Parameter atEnd: Whether to include the other subjects.
    package func summarize(atEnd: Bool = false) {
        let now = now()
        for summary in sampler.withLock({ $0.summaries(now: now, atEnd: atEnd) }) {
            logger.info(
                "similar messages of the last minute were left out",
                metadata: [
                    "count": "\(summary.suppressed)",
                    "event": "\(summary.subject?.event.rawValue ?? "any")",
                    "subject": "\(summary.subject?.name ?? "many")",
                ])
        }
    }
}
