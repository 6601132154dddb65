import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct APNsPushFormTests {
    private func text(_ form: APNsPushForm, wall: Int64 = 1_000_999) -> [String] {
        form.fields(wall: wall).map { "\($0.name): \($0.value)" }
    }

    @Test func `a type without configuration is sent as Apple documents it`() throws {
        #expect(
            text(try APNsPushForm(.widgets, app: "com.mygame")) == [
                "apns-push-type: widgets", "apns-topic: com.mygame.push-type.widgets",
            ])
        #expect(
            text(try APNsPushForm(.controls, app: "com.mygame")) == [
                "apns-push-type: controls", "apns-topic: com.mygame.push-type.controls",
                "apns-priority: 10", "apns-expiration: 0",
            ])
        #expect(
            text(try APNsPushForm(.background, app: "com.mygame")) == [
                "apns-push-type: background", "apns-topic: com.mygame", "apns-priority: 5",
            ])
        #expect(
            text(try APNsPushForm(.liveactivity, app: "com.mygame")) == [
                "apns-push-type: liveactivity", "apns-topic: com.mygame.push-type.liveactivity",
                "apns-expiration: 29800",
            ])
    }

    @Test func `only a push for a Live Activity has a priority of its own`() throws {
        let form = try APNsPushForm(.liveactivity, app: "a")
        #expect(form.at(priority: 10).priority == 10 && form.at(priority: 5).priority == 5)
        #expect(form.at(priority: 5).at(priority: nil) == form && form.at(priority: 1) == form)
        let background = try APNsPushForm(.background, app: "a")
        #expect(background.at(priority: 10) == background)
    }

    @Test func `a start is stored until its own end, if that is earlier`() throws {
        let form = try APNsPushForm(.liveactivity, app: "a")
        for (end, expiration) in [(1_900_999, 1_900), (99_000_000, 29_800)] as [(Int64, Int64)] {
            #expect(
                text(form.at(priority: 10, until: end)).last == "apns-expiration: \(expiration)")
        }
        let unlimited = try APNsPushForm(.liveactivity, app: "a", priority: nil, lifetime: nil)
        #expect(text(unlimited.at(priority: 5, until: 9_000)).last == "apns-expiration: 9")
        let unstored = try APNsPushForm(.liveactivity, app: "a", priority: nil, lifetime: 0)
        #expect(text(unstored.at(priority: 5, until: 9_000)).last == "apns-expiration: 0")
    }

    @Test func `an expiration is in seconds, and counts from now`() throws {
        let form = try APNsPushForm(
            .widgets, app: "a", priority: 1, lifetime: 60, collapseID: "reload")
        #expect(
            text(form).suffix(3) == [
                "apns-priority: 1", "apns-expiration: 1060", "apns-collapse-id: reload",
            ])
    }

    @Test func `payloads say nothing but that something changed`() throws {
        func payload(_ channel: APNsPushType) throws -> String {
            String(decoding: try APNsPushForm(channel, app: "a").payload, as: UTF8.self)
        }
        #expect(try payload(.widgets) == #"{"aps":{"content-changed":true}}"#)
        #expect(try payload(.controls) == #"{"aps":{"content-changed":true}}"#)
        #expect(try payload(.background) == #"{"aps":{"content-available":1}}"#)
        // Each push for a Live Activity has its own.
        #expect(try payload(.liveactivity) == "")
    }

    @Test func `what APNs would refuse is refused here`() {
        func fault(
            _ channel: APNsPushType = .widgets, app: String = "com.mygame",
            priority: Int? = nil, lifetime: Int64? = nil, collapseID: String? = nil
        ) -> APNsPushForm.Fault? {
            do throws(APNsPushForm.Fault) {
                _ = try APNsPushForm(
                    channel, app: app, priority: priority, lifetime: lifetime,
                    collapseID: collapseID)
                return nil
            } catch {
                return error
            }
        }
        #expect(fault(app: "") == .app && fault(app: "a b") == .app && fault(app: "a/b") == .app)
        #expect(fault(priority: 7) == .priority)
        #expect(fault(.background) == .priority && fault(.background, priority: 10) == .priority)
        #expect(fault(.background, priority: 5) == nil)
        #expect(fault(.liveactivity, priority: 1) == .priority)
        #expect([nil, 5, 10].allSatisfy { fault(.liveactivity, priority: $0) == nil })
        #expect(fault(lifetime: -1) == .lifetime && fault(lifetime: 2_592_001) == .lifetime)
        let most = String(repeating: "é", count: 32)
        #expect(fault(collapseID: most) == nil && fault(collapseID: most + "a") == .collapseID)
        #expect(fault(collapseID: "") == .collapseID && fault(collapseID: "a\nb") == .collapseID)
    }
}
