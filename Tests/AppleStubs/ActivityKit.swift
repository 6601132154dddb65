// swift-format-ignore-file
// A stub for Deploy/check-client: see AppleFoundation.swift. What a sequence tells is so once it is read.
import Foundation
import Synchronization

nonisolated(unsafe) var all: [Any] = []
/// The sequences that were read, each a bit.
let sequencesRead = Atomic(0)

func isRead(_ bit: Int) -> Bool { sequencesRead.load(ordering: .acquiring) & bit != 0 }

func once<Element>(_ bit: Int, _ element: sending Element) -> AsyncStream<Element> {
    sequencesRead.bitwiseOr(bit, ordering: .acquiringAndReleasing)
    let (stream, continuation) = AsyncStream.makeStream(of: Element.self)
    continuation.yield(element)
    continuation.finish()
    return stream
}

public protocol ActivityAttributes: Decodable, Encodable { associatedtype ContentState: Decodable, Encodable, Hashable }

public enum ActivityState: Sendable { case pending, active, ended, dismissed, stale }

public struct ActivityContent<State>: Sendable where State: Decodable & Encodable & Hashable & Sendable {
    public init(state: State, staleDate: Date?, relevanceScore: Double = 0) {}
}

public struct PushType: Sendable { public static let token = PushType() }

public class Activity<Attributes> where Attributes: ActivityAttributes {
    public let id: String
    public let attributes: Attributes
    init(_ id: String, _ attributes: Attributes) { (self.id, self.attributes) = (id, attributes) }
    public static func request(
        attributes: Attributes, content: ActivityContent<Attributes.ContentState>, pushType: PushType? = nil
    ) throws -> Activity<Attributes> { Activity("", attributes) }
    static var known: [Activity<Attributes>] { all.compactMap { $0 as? Activity<Attributes> } }
    public static var activities: [Activity<Attributes>] { isRead(1) ? known : [] }
    public static var activityUpdates: AsyncStream<Activity<Attributes>> { once(1, known[0]) }
    public var pushToken: Data? { isRead(2) ? Data([10, 255]) : nil }
    public var pushTokenUpdates: AsyncStream<Data> { once(2, Data()) }
    public var activityState: ActivityState { id == "2" && isRead(4) ? .ended : .active }
    public var activityStateUpdates: AsyncStream<ActivityState> { once(4, .ended) }
    public static var pushToStartToken: Data? { isRead(8) ? Data([1]) : nil }
    public static var pushToStartTokenUpdates: AsyncStream<Data> { once(8, Data()) }
}
