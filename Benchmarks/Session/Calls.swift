import CBenchmark
import Dispatch
import Nigh

/// One side of calls with bytes there and the same bytes back, between tasks of the global pool.
///
/// `@unchecked Sendable`: of its variables, `called` and `calls` are made for use by several threads.
final class CallSide: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let session: Session
    private let called = UnsafeMutablePointer<benchmark_called>.allocate(capacity: 1)
    private let calls = UnsafeMutablePointer<benchmark_calls>.allocate(capacity: 1)
    private let end = DispatchSemaphore(value: 0)

    init(_ setting: BenchmarkSetting) {
        self.setting = setting
        // JSON would have a number for each byte.
        session = setting.taskSession { $0.coder = CBORCoder() }
        called.initialize(to: benchmark_called(size: setting.size, processor_at_begin: 0))
        calls.initialize(to: benchmark_calls())
    }

    // MARK: The side that answers

    func serve() {
        BenchmarkSetting.demand { () throws(NighError) in
            try session.answer("echo") { [self] (bytes: [UInt8], _) in
                bytes.withUnsafeBytes { benchmark_call_received(called, $0.bytes, $0.count) }
                return bytes
            }
        }
        setting.accept(with: session)
        benchmark_wait_for_other_side()
    }

    // MARK: The side that calls

    func call() {
        Task { [self] in
            let peer = await setting.invite(with: session)
            switch setting.options.work {
            case BENCHMARK_ROUND_TRIP: await callOneAtATime(peer)
            case BENCHMARK_CALLS_AT_ONCE: await callAtOnce(peer)
            default: benchmark_unsupported("calls are there for round trips only")
            }
            end.signal()
        }
        end.wait()
    }

    private func callOneAtATime(_ peer: Peer) async {
        let outgoing = PreparedPayloads(size: setting.size)
        var trips = benchmark_trips()
        var options = setting.options
        benchmark_trips_begin(&trips, &options)
        var continues = true
        while continues {
            let answer = await echo(outgoing.bytes(benchmark_trips_next(&trips)), by: peer)
            continues = answer.withUnsafeBytes { benchmark_trips_returned(&trips, $0.bytes, $0.count) }
        }
        benchmark_trips_report(&trips)
    }

    private func callAtOnce(_ peer: Peer) async {
        let outgoing = PreparedPayloads(size: setting.size)
        var options = setting.options
        benchmark_calls_begin(calls, &options)
        await withTaskGroup(of: Void.self) { [self] group in
            for _ in 0..<BENCHMARK_AT_ONCE {
                group.addTask { [self] in
                    while let payload = benchmark_calls_next(calls) {
                        await echo(outgoing.bytes(payload), by: peer).withUnsafeBytes {
                            benchmark_calls_answered(calls, payload, $0.bytes, $0.count)
                        }
                    }
                }
            }
        }
        benchmark_calls_report(calls)
    }

    private func echo(_ bytes: [UInt8], by peer: Peer) async -> [UInt8] {
        do throws(NighError) {
            return try await peer.ask("echo", bytes, for: [UInt8].self)
        } catch {
            BenchmarkSetting.fail("\(error)")
        }
    }
}
