import GatewayEngine
import Testing
import WidgetModel

@Suite struct ChangeFilterTests {
    @Test func `an empty filter admits every change`() {
        let filter = ChangeFilter()
        #expect(filter.isEmpty)
        #expect(filter.admits(Change(entity: "E"), source: nil))
        #expect(filter.admits(kinds: [], isUnmatched: true))
    }

    @Test func `each condition has to hold`() {
        var filter = ChangeFilter()
        (filter.entity, filter.entityID, filter.source) = ("E", "1", "shop")
        #expect(!filter.isEmpty)
        #expect(filter.admits(Change(entity: "E", id: "1"), source: "shop"))
        #expect(!filter.admits(Change(entity: "F", id: "1"), source: "shop"))
        #expect(!filter.admits(Change(entity: "E", id: "2"), source: "shop"))
        #expect(!filter.admits(Change(entity: "E"), source: "shop"))
        #expect(!filter.admits(Change(entity: "E", id: "1"), source: nil))
        filter.kind = "k"
        #expect(filter.admits(kinds: ["j", "k"], isUnmatched: false))
        #expect(!filter.admits(kinds: ["j"], isUnmatched: false))
        filter.kind = nil
        filter.isUnmatchedOnly = true
        #expect(filter.admits(kinds: [], isUnmatched: true))
        #expect(!filter.admits(kinds: ["k"], isUnmatched: false))
    }

    @Test func `texts are compared by their bytes`() {
        var filter = ChangeFilter()
        filter.entity = "\u{E9}"
        #expect(!filter.admits(Change(entity: "e\u{301}"), source: nil))
    }
}
