/// A few events that once led to a notification for nothing, or to a late one.
struct OracleScript: Sendable, CustomStringConvertible {
    let name: String
    let events: [OracleEvent]
    /// `push.spreadPerSecond`.
    let devicesPerSecond: Int

    var description: String { name }

    private init(_ name: String, devicesPerSecond: Int = 1_000, _ events: [OracleEvent]) {
        self.name = name
        self.events = events
        self.devicesPerSecond = devicesPerSecond
    }

    static let all = streams + cursors + floors + collapses + sets + others

    // MARK: A stream is first

    private static let streams: [OracleScript] = [
        beside("1 the first address", [], then: [.addresses("a", [.widgets("a1")])]),
        beside(
            "1 an address again", [.widgets("a1")],
            then: [.addresses("a", []), .addresses("a", [.widgets("a1")])]),
        beside("1 the first webhook", [], then: [.addresses("a", [.webhook("a1")])]),
        beside(
            "1 the first control", [],
            then: [.control("a", id: "1", lamp: "panda", .controls("a1"))]),
        beside(
            "1 another channel", [.webhook("a1")],
            then: [.addresses("a", [.widgets("a1"), .webhook("a1")])]),
        OracleScript(
            "12 a stream for another kind",
            [
                .client("a", [.widgets("a1")]), .opens("a", kinds: ["status"]), .pass(60_000),
                .change("Character", "panda"), .pass(60_000),
            ]),
    ]

    /// A client whose stream is open before its address is there acknowledges at once what it is
    /// told.
    private static func beside(
        _ name: String, _ addresses: [OracleAddress], then addressing: [OracleEvent]
    ) -> OracleScript {
        var events: [OracleEvent] = [.client("a", addresses), .prompt("a"), .opens("a")]
        events += addressing
        events += [.change("Character", "panda"), .change("Lamp", "panda"), .pass(60_000)]
        return OracleScript(name, events)
    }

    // MARK: Server-held cursors

    private static let cursors: [OracleScript] = [
        acknowledged("2a the first address", [], then: [.addresses("a", [.widgets("a1")])]),
        acknowledged("2a the first webhook", [], then: [.addresses("a", [.webhook("a1")])]),
        acknowledged(
            "2a the first control", [],
            then: [.control("a", id: "1", lamp: "panda", .controls("a1"))]),
        acknowledged(
            "2a APNs beside a webhook", [.webhook("a1")],
            then: [.addresses("a", [.widgets("a1"), .webhook("a1")])]),
        acknowledged(
            "2a a webhook without APNs", [.widgets("a1"), .webhook("a1")],
            then: [.addresses("a", [.webhook("a1")])]),
        acknowledged(
            "2a another token after a dead one", [.widgets("a1")],
            then: [
                .dies("a"), .change("Character", "panda"), .polls("a"), .acks("a"),
                .addresses("a", [.widgets("a2")]),
            ]),
        OracleScript(
            "2b a widget more",
            [
                .client("a", [.widgets("a1")]), .change("Character", "owl"),
                .adds("a", "detail", "owl"), .pass(60_000),
            ]),
        OracleScript(
            "2b another account",
            [
                .client("a", [.widgets("a1")]), .change("Account", "2"),
                .moves("a", account: "2"), .pass(60_000),
            ]),
        OracleScript(
            "14 a token that dies before a webhook",
            [
                .client("a", [.widgets("a1"), .webhook("a1")]), .dies("a"),
                .change("Character", "panda"), .pass(60_000),
            ]),
    ]

    private static let floors: [OracleScript] = [
        acknowledged(
            "2d the same document", [.widgets("a1")], then: [.flood, .touch("a", .put)]),
        acknowledged(
            "2d a patch, and a webhook", [.webhook("a1")], then: [.flood, .touch("a", .version)]),
        OracleScript(
            "2d the same document, and a stream",
            [
                .client("a", [.widgets("a1")]), .opens("a"), .flood, .touch("a", .put),
                .pass(60_000),
            ]),
        OracleScript(
            "2e one of two timelines",
            [
                .client("a", [.webhook("a1")]), .flood, .change("Character", "panda"),
                .pass(60_000),
            ]),
        OracleScript(
            "2f a restart",
            [
                .client("a", [.widgets("a1")]), .client("b", [.webhook("b1")]), .turnover,
                .turnover, .restart, .pass(60_000),
            ]),
        acknowledged(
            "2f a restart after a push", [.widgets("a1")],
            then: [.turnover, .turnover, .restart]),
    ]

    /// A client polled and acknowledged all before.
    private static func acknowledged(
        _ name: String, _ addresses: [OracleAddress], then others: [OracleEvent]
    ) -> OracleScript {
        var events: [OracleEvent] = [
            .client("a", addresses), .change("Character", "panda"), .change("Lamp", "panda"),
            .polls("a"), .acks("a"), .pass(60_000),
        ]
        events += others
        events.append(.pass(60_000))
        return OracleScript(name, events)
    }

    // MARK: Collapse windows

    private static let collapses: [OracleScript] = [
        OracleScript(
            "3 a webhook",
            [
                .catalog(.window("detail", 4_000)), .client("a", [.webhook("a1")]),
                .change("Character", "panda"), .pass(300), .change("Character", "panda"),
                .pass(300), .change("Character", "panda"), .pass(60_000),
            ]),
        OracleScript(
            "3 APNs",
            [
                .catalog(.window("detail", 60_000)), .client("a", [.widgets("a1")]),
                .change("Character", "panda"), .pass(300), .change("Character", "panda"),
                .pass(120_000),
            ]),
        OracleScript(
            "4a a window longer than the grace",
            [
                .catalog(.window("detail", 60_000)), .client("a", [.widgets("a1")]), .prompt("a"),
                .opens("a"), .change("Character", "panda"), .pass(2_000),
                .change("Character", "panda"), .pass(120_000),
            ]),
        OracleScript(
            "4b a window of another kind",
            [
                .catalog(.window("busy", 60_000)), .client("a", [.widgets("a1")]), .prompt("a"),
                .client("b"), .adds("b", "busy", "panda"), .opens("a"), .opens("b"),
                .change("News", "panda"), .change("News", "panda"), .change("Character", "panda"),
                .pass(30_000),
            ]),
        OracleScript(
            "9 another display name",
            [
                .catalog(.window("detail", 4_000)), .client("a"), .opens("a"),
                .change("Character", "panda"), .pass(300), .change("Character", "panda"),
                .catalog(.rename("status")), .pass(60_000),
            ]),
    ]

    // MARK: Recommendation sets

    private static let sets: [OracleScript] =
        [
            OracleScript(
                "5 quiet sets beside many that are owed",
                [
                    .holders("owed", 800, of: "owl"), .holders("quiet", 40, of: "panda"),
                    .change("Offer", "owl"), .turnover, .turnover, .turnover, .turnover,
                    .eachPolls("quiet"), .restart, .eachPolls("quiet"),
                ])
        ]
        + OracleTouch.allCases.map { touch in
            OracleScript(
                "6 a confirmed set, and \(touch)",
                [
                    .client("a"), .set("a", of: "panda", builtAtCursor: true),
                    .change("Offer", "panda"), .polls("a"), .acks("a", sets: true),
                    .touch("a", touch), .polls("a"),
                ])
        }

    // MARK: Others

    private static let others: [OracleScript] = [
        OracleScript(
            "7 many devices after a void epoch", devicesPerSecond: 4,
            [.devices("device", 40), .void, .pass(120_000)]),
        OracleScript(
            "10 two controls of one address",
            [
                .client("a", [.controls("a1")]), .control("a", id: "1", lamp: "panda"),
                .control("a", id: "2", lamp: "panda"), .change("Lamp", "panda"), .pass(60_000),
            ]),
        OracleScript(
            "an acknowledged timeline beside a set that is owed",
            [
                .client("a", [.webhook("a1")]), .set("a", of: "panda", builtAtCursor: false),
                .opens("a"), .change("Offer", "panda"), .pass(60_000),
                .change("Character", "panda"), .acks("a"), .pass(60_000),
            ]),
        OracleScript(
            "4a a stream that opens in a window",
            [
                .catalog(.window("detail", 60_000)), .client("a", [.widgets("a1")]),
                .change("Character", "panda"), .pass(30_000), .prompt("a"), .opens("a"),
                .burst("Character", "panda", 2), .pass(120_000),
            ]),
        OracleScript(
            "the first address for widgets beside one for a control",
            [
                .client("a"), .control("a", id: "1", lamp: "panda", .controls("a1")),
                .change("Character", "panda"), .addresses("a", [.webhook("a1")]), .pass(60_000),
            ]),
        OracleScript(
            "the first address for a control beside one for widgets",
            [
                .client("a", [.widgets("a1")]), .control("a", id: "1", lamp: "owl"),
                .change("Lamp", "owl"), .addresses("a", [.webhook("a1")]), .pass(60_000),
            ]),
        OracleScript(
            "a set that is owed while a floor passes",
            [
                .client("a", [.widgets("a1"), .background("a1")]),
                .set("a", of: "panda", builtAtCursor: true), .flood, .adds("a", "busy", "panda"),
                .change("Character", "owl"), .touch("a", .put), .restart, .pass(60_000),
            ]),
        OracleScript(
            "an activity beside a stream whose client acknowledges",
            [
                .client("a", [.widgets("a1")]), .prompt("a"), .opens("a"),
                .begins("a", hero: "panda", .activity("a001")), .burst("Fight", "panda", 2),
                .change("Fight", "owl"), .change("Character", "panda"), .pass(60_000),
            ]),
        OracleScript(
            "another token of an activity, first owed and then not",
            [
                .client("a"), .begins("a", hero: "panda", .activity("a001")), .fails("a", 1),
                .change("Fight", "panda"), .polls("a"), .acks("a"),
                .begins("a", hero: "panda", .activity("a002")), .pass(60_000),
                .begins("a", hero: "panda", .activity("a003")), .pass(900_000),
            ]),
        OracleScript(
            "an activity that was told, and a restart",
            [
                .client("a"), .begins("a", hero: "panda", .activity("a001")),
                .change("Fight", "panda"), .turnover, .turnover, .restart, .pass(60_000),
            ]),
        OracleScript(
            "an activity without an address, and a webhook",
            [
                .client("a", [.webhook("a1")]), .begins("a", hero: "panda"),
                .change("Fight", "panda"), .polls("a"), .acks("a"), .opens("a"), .prompt("a"),
                .change("Fight", "panda"), .pass(60_000), .ends("a", hero: "panda"),
                .change("Fight", "panda"), .pass(60_000),
            ]),
        OracleScript(
            "a timeline that was owed and is removed, beside a stream",
            [
                .client("a", [.widgets("a1")]), .opens("a"), .change("Character", "panda"),
                .removes("a", "detail", "panda"), .pass(15_000), .change("Account", "1"),
                .pass(60_000),
            ]),
        OracleScript(
            "a timeline that was owed and is removed, and another token",
            [
                .client("a", [.widgets("a1")]), .opens("a"), .adds("a", "detail", "fox"),
                .change("Character", "fox"), .pass(21_000), .removes("a", "detail", "fox"),
                .change("Account", "1"), .addresses("a", [.widgets("a2")]), .pass(60_000),
            ]),
        OracleScript(
            "a set that was confirmed for its client",
            [
                .client("a", [.webhook("a1")]), .set("a", of: "panda", builtAtCursor: true),
                .turnover, .flood, .touch("a", .reorder), .pass(900_000),
            ]),
    ]
}
