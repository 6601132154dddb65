import GatewayCore
import Testing
import WidgetModel

@Suite struct FailingAddressesTests {
    @Test func `only changes are told`() {
        var addresses = FailingAddresses<String>()
        var changes: [FailingAddresses<String>.Change?] = []
        for isSent in [true, false, false, true, true, false, true] {
            changes.append(addresses.ended(at: "a", isSent: isSent))
        }
        #expect(changes == [nil, .fails, nil, .worksAgain, nil, .fails, .worksAgain])
        #expect(addresses.count == 0)
    }

    @Test func `the number of addresses is limited, and a new one is always reported`() {
        var addresses = FailingAddresses<Int>(addressesMax: 3)
        for address in 0..<10 {
            let change = addresses.ended(at: address, isSent: false)
            #expect(change == .fails)
            #expect(addresses.count <= 3)
        }
        let last = addresses.ended(at: 9, isSent: true)
        #expect(last == .worksAgain)
    }
}
