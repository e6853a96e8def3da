import CBenchmark
import Dispatch
import NighLoop

/// Connects, sends one message, receives one message, and disconnects, again and again.
///
/// `@unchecked Sendable`: touched on the loop only.
final class Caller: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let session: LowLevelSession
    private let end = DispatchSemaphore(value: 0)
    private let outgoing: Outgoing
    private let payload: UnsafePointer<UInt8>
    private var trips = benchmark_trips()
    private var begunAt: UInt64 = 0

    init(_ setting: BenchmarkSetting) {
        self.setting = setting
        session = setting.session(.client)
        outgoing = Outgoing(session, size: setting.size)
        payload = UnsafePointer(benchmark_payload(setting.size, 0))
        var options = setting.options
        benchmark_trips_begin(&trips, &options)
    }

    func connect() {
        session.start(
            onEvent: { _ in },
            onMessage: { [self] _, origin in
                benchmark_trips_add(&trips, benchmark_now() - begunAt)
                session.disconnect(origin.peer) { [self] _ in call() }
            })
        session.loop.execute { [self] in call() }
        end.wait()
    }

    private func call() {
        guard trips.sample_count < setting.options.count else {
            benchmark_trips_report(&trips)
            end.signal()
            return
        }
        begunAt = benchmark_now()
        session.invite(at: setting.address()) { [self] result in
            outgoing.post(payload, to: BenchmarkSetting.demand { () throws(NighError) in try result.get() })
        }
    }
}
