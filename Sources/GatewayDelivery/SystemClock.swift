import GatewayCore
import Glibc

extension GatewayClock {
    package static let system = GatewayClock(
        now: { milliseconds(CLOCK_MONOTONIC) },
        wallMilliseconds: { milliseconds(CLOCK_REALTIME) },
        sleep: { try? await Task.sleep(for: .milliseconds($0 - milliseconds(CLOCK_MONOTONIC))) })

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
