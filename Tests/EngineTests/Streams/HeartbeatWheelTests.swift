import Testing

@testable import GatewayCore
@testable import GatewayEngine

/// The seconds in which the heartbeats of streams are due.
@Suite struct HeartbeatWheelTests {
    private func stream(_ number: UInt32) -> StreamID { StreamID(slot: number, serial: 0) }

    @Test(arguments: [1, 2, 15, 30]) func `a heartbeat is due once in each interval`(interval: Int)
    {
        var wheel = HeartbeatWheel(interval: interval)
        wheel.add(stream(1))
        for second in 1...(3 * interval) {
            let due = wheel.advance()
            #expect(due == (second.isMultiple(of: interval) ? [stream(1)] : []))
            for id in due { wheel.add(id) }
        }
    }

    @Test func `streams opened in different seconds are due in different ones`() {
        var wheel = HeartbeatWheel(interval: 3)
        wheel.add(stream(1))
        #expect(wheel.advance() == [])
        wheel.add(stream(2))
        #expect(wheel.advance() == [])
        #expect(wheel.advance() == [stream(1)])
        #expect(wheel.advance() == [stream(2)])
        #expect(wheel.advance() == [] && wheel.advance() == [], "they were not added again")
    }
}
