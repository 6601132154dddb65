import Foundation
import GatewayPush
import WidgetModel

/// The stored push state of a client as bytes: JSON, like everything else in the store.
package enum PushClientPayload {
    package static func data(_ saved: PushScheduler.SavedClient) -> Data {
        var object: JSONObject = [
            "lanes": .array(saved.lanes.map { lane($0.key, $0.value) }),
            "addresses": .array(saved.addresses.map(address)),
        ]
        if let budget = saved.budget { object["budget"] = self.budget(budget) }
        return Data(JSONValue.object(object).serialized)
    }

    /// - Throws: ``LogPayload/Unreadable``.
    package static func read(_ payload: Data) throws -> PushScheduler.SavedClient {
        let value = try JSONValue(parsing: Array(payload))
        guard let object = value.objectValue, let lanes = object["lanes"]?.arrayValue,
            let addresses = object["addresses"]?.arrayValue
        else { throw LogPayload.Unreadable(reason: "a pushed client without lanes") }
        return PushScheduler.SavedClient(
            lanes: try Dictionary(lanes.map(readLane)) { $1 },
            addresses: try addresses.map(readAddress), budget: try object["budget"].map(readBudget))
    }

    // MARK: Targets

    private static func lane(_ sort: PushCategory, _ attempts: DeliveryAttempts.Saved) -> JSONValue
    {
        var object: JSONObject = [
            "sort": .string(sort.text), "savedAt": .integer(attempts.savedAt),
            "latest": .bits(attempts.latest), "confirmed": .bits(attempts.confirmed),
            "told": .bits(attempts.told),
            "urgency": .integer(Int64(attempts.urgency)),
            "answers": .bool(attempts.isKnownToAnswer), "held": .integer(attempts.held),
            "grace": .integer(attempts.grace),
            "addresses": .array(attempts.addresses.map(address)),
        ]
        // Only Live Activities have these members.
        if attempts.stamp != 0 { object["stamp"] = .integer(attempts.stamp) }
        if attempts.startedSince != 0 { object["startedSince"] = .bits(attempts.startedSince) }
        return .object(object)
    }

    private static func address(_ address: DeliveryAttempts.SavedAddress) -> JSONValue {
        var object: JSONObject = [
            "id": .bits(address.id), "delivered": .bits(address.delivered),
            "spokeSince": .bits(address.spokeSince),
            "givenUp": .bits(address.givenUp), "failures": .integer(Int64(address.failures)),
            "repeats": .integer(Int64(address.repeats)), "awaits": .bool(address.awaitsSign),
            "usable": .bool(address.isUsable), "wait": .integer(address.wait),
            "repeatWait": .integer(address.repeatWait),
        ]
        if address.hasEnded { object["ended"] = true }
        return .object(object)
    }

    private static func readLane(
        _ value: JSONValue
    ) throws -> (PushCategory, DeliveryAttempts.Saved) {
        let lane = try Members(value)
        return (
            PushCategory(text: try lane.text("sort")),
            .init(
                savedAt: try lane.number("savedAt"), latest: try lane.bits("latest"),
                confirmed: try lane.bits("confirmed"),
                // Older versions did not store it; the addresses then say what was told.
                told: lane.object["told"] == nil ? 0 : try lane.bits("told"),
                urgency: UInt8(clamping: try lane.number("urgency")),
                isKnownToAnswer: try lane.flag("answers"), held: try lane.number("held"),
                grace: try lane.number("grace"),
                addresses: try lane.list("addresses").map {
                    let address = try Members($0)
                    let hasEnded = address.object["ended"] == true
                    return .init(
                        id: try address.bits("id"), delivered: try address.bits("delivered"),
                        // Older versions did not store it; a resend then states everything.
                        spokeSince: address.object["spokeSince"] == nil
                            ? 0 : try address.bits("spokeSince"),
                        givenUp: try address.bits("givenUp"),
                        failures: Int(clamping: try address.number("failures")),
                        repeats: Int(clamping: try address.number("repeats")),
                        awaitsSign: try address.flag("awaits"),
                        isUsable: try address.flag("usable"), hasEnded: hasEnded,
                        wait: try address.number("wait"),
                        repeatWait: try address.number("repeatWait"))
                }, stamp: lane.object["stamp"]?.integerValue ?? 0,
                startedSince: lane.object["startedSince"] == nil ? 0 : try lane.bits("startedSince")
            )
        )
    }

    // MARK: Addresses

    private static func address(_ address: PushScheduler.SavedClient.Address) -> JSONValue {
        var object: JSONObject = ["id": .bits(address.id)]
        if let environment = address.environment {
            object["environment"] = .integer(Int64(environment.current.rawValue))
            object["standing"] = .integer(Int64(environment.standing.rawValue))
        }
        if let webhook = address.webhook {
            object["webhook"] = [
                "savedAt": .integer(webhook.savedAt), "message": .bits(webhook.message),
                "content": .bits(webhook.content), "delivered": .bool(webhook.isDelivered),
                "failures": .integer(Int64(webhook.failures)),
                "failingFor": .integer(webhook.failingFor),
                "disabled": .integer(Int64(webhook.disabled)),
            ]
        }
        return .object(object)
    }

    private static func readAddress(
        _ value: JSONValue
    ) throws -> PushScheduler.SavedClient.Address {
        let address = try Members(value)
        var environment: APNsEnvironmentChoice?
        if address.object["environment"] != nil {
            guard
                let current = APNsEnvironment(
                    rawValue: UInt8(clamping: try address.number("environment"))),
                let standing = APNsEnvironmentChoice.Status(
                    rawValue: UInt8(clamping: try address.number("standing")))
            else { throw LogPayload.Unreadable(reason: "a pushed client's environment") }
            environment = APNsEnvironmentChoice(current: current, standing: standing)
        }
        let webhook = try address.object["webhook"].map { value in
            let webhook = try Members(value)
            return WebhookSchedule.Saved(
                savedAt: try webhook.number("savedAt"), message: try webhook.bits("message"),
                content: try webhook.bits("content"), isDelivered: try webhook.flag("delivered"),
                failures: Int(clamping: try webhook.number("failures")),
                failingFor: try webhook.number("failingFor"),
                disabled: UInt8(clamping: try webhook.number("disabled")))
        }
        return .init(id: try address.bits("id"), environment: environment, webhook: webhook)
    }

    // MARK: Budgets

    private static func budget(_ budget: PushBudget.Saved) -> JSONValue {
        var object: JSONObject = ["savedAt": .integer(budget.savedAt)]
        for account in PushBudget.Account.allCases {
            object[account.rawValue] = budget.credits[account].map { .integer($0) }
        }
        object["pushed"] = .array(
            budget.pushed.map { ["kind": .bits($0.kind), "age": .integer($0.age)] })
        return .object(object)
    }

    private static func readBudget(_ value: JSONValue) throws -> PushBudget.Saved {
        let budget = try Members(value)
        var credits: [PushBudget.Account: Int64] = [:]
        // Older versions did not have all accounts.
        for account in PushBudget.Account.allCases where budget.object[account.rawValue] != nil {
            credits[account] = try budget.number(account.rawValue)
        }
        return PushBudget.Saved(
            savedAt: try budget.number("savedAt"), credits: credits,
            pushed: try budget.list("pushed").map {
                let pushed = try Members($0)
                return .init(kind: try pushed.bits("kind"), age: try pushed.number("age"))
            })
    }

    /// The members of an object, all of them required.
    private struct Members {
        let object: JSONObject

        init(_ value: JSONValue) throws {
            guard let object = value.objectValue else {
                throw LogPayload.Unreadable(reason: "a pushed client: not an object")
            }
            self.object = object
        }

        func number(_ name: String) throws -> Int64 { try need(name, \.integerValue) }
        func bits(_ name: String) throws -> UInt64 { UInt64(bitPattern: try number(name)) }
        func flag(_ name: String) throws -> Bool { try need(name, \.boolValue) }
        func text(_ name: String) throws -> String { try need(name, \.stringValue) }
        func list(_ name: String) throws -> [JSONValue] { try need(name, \.arrayValue) }

        private func need<T>(_ name: String, _ read: (JSONValue) -> T?) throws -> T {
            guard let value = object[name].flatMap(read) else {
                throw LogPayload.Unreadable(reason: "a pushed client without `\(name)`")
            }
            return value
        }
    }
}

extension JSONValue {
    /// All 64 bits as a JSON integer, which is signed here.
    fileprivate static func bits(_ value: UInt64) -> JSONValue {
        .integer(Int64(bitPattern: value))
    }
}

extension PushCategory {
    /// The category as text; for a control or activity with its id, for a start with its type.
    var text: String {
        switch self {
        case .timelines: "timelines"
        case .recommendations: "recommendations"
        case .control(let id): "control " + id
        case .activity(let id): "activity " + id
        case .start(let type): "start " + type
        }
    }

    /// Reads ``text``; unknown text becomes a category that no push has, and is ignored. Older
    /// versions had one category for all content of a client without APNs.
    init(text: String) {
        // A mark at the beginning of the name makes one character with the space.
        let word = text.unicodeScalars.prefix { $0 != " " }
        let name = String(text.unicodeScalars.dropFirst(word.count + 1))
        switch String(word) {
        case "everything", "timelines": self = .timelines
        case "recommendations": self = .recommendations
        case "activity": self = .activity(id: name)
        case "start": self = .start(type: name)
        default: self = .control(id: name)
        }
    }
}
