import CBenchmark
import Dispatch
import Distributed
import Nigh
import NighActors

/// One side of calls with bytes there and the same bytes back, between tasks of the global pool.
///
/// `@unchecked Sendable`: of its variables, `called` and `calls` are made for use by several threads.
final class CallSide: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let session: Session
    /// The system whose actors are called; nil if the peer's program is asked.
    private let actors: NighActors.ActorSystem?
    private let called = UnsafeMutablePointer<benchmark_called>.allocate(capacity: 1)
    private let calls = UnsafeMutablePointer<benchmark_calls>.allocate(capacity: 1)
    private let end = DispatchSemaphore(value: 0)

    init(_ setting: BenchmarkSetting, callsActor: Bool) {
        self.setting = setting
        // JSON would have a number for each byte.
        let session = setting.taskSession { $0.coder = CBORCoder() }
        self.session = session
        actors =
            callsActor ? BenchmarkSetting.demand { () throws(NighError) in try ActorSystem(session) } : nil
        called.initialize(to: benchmark_called(size: setting.size, processor_at_begin: 0))
        calls.initialize(to: benchmark_calls())
    }

    // MARK: The side that answers

    func serve() {
        BenchmarkSetting.demand { () throws(NighError) in
            if let actors {
                let echo = EchoActor(actorSystem: actors, received: { [self] in received($0) })
                return try actors.publish(echo, as: "echo", through: $Echoing.self)
            }
            try session.answer("echo") { [self] (bytes: [UInt8], _) in
                received(bytes)
                return bytes
            }
        }
        setting.accept(with: session)
        benchmark_wait_for_other_side()
    }

    private func received(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { benchmark_call_received(called, $0.bytes, $0.count) }
    }

    // MARK: The side that calls

    func call() {
        Task { [self] in
            let peer = await callee()
            switch setting.options.work {
            case BENCHMARK_ROUND_TRIP: await callOneAtATime(peer)
            case BENCHMARK_CALLS_AT_ONCE: await callAtOnce(peer)
            default: benchmark_unsupported("calls are there for round trips only")
            }
            end.signal()
        }
        end.wait()
    }

    /// The side that answers.
    private struct Callee: Sendable {
        let peer: Peer
        let echo: $Echoing?
    }

    private func callee() async -> Callee {
        let peer = await setting.invite(with: session)
        return BenchmarkSetting.demand { () throws(NighError) in
            Callee(peer: peer, echo: try actors?.actor($Echoing.self, named: "echo", on: peer))
        }
    }

    private func callOneAtATime(_ peer: Callee) async {
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

    private func callAtOnce(_ peer: Callee) async {
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

    private func echo(_ bytes: [UInt8], by callee: Callee) async -> [UInt8] {
        do {
            if let echo = callee.echo { return try await echo.echo(bytes) }
            return try await callee.peer.ask("echo", bytes, for: [UInt8].self)
        } catch {
            BenchmarkSetting.fail("\(error)")
        }
    }
}

/// An actor that returns its argument.
@Resolvable protocol Echoing: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func echo(_ bytes: [UInt8]) -> [UInt8]
}

distributed actor EchoActor: Echoing {
    typealias ActorSystem = NighActors.ActorSystem

    private let received: @Sendable ([UInt8]) -> Void

    init(actorSystem: ActorSystem, received: @escaping @Sendable ([UInt8]) -> Void) {
        self.actorSystem = actorSystem
        self.received = received
    }

    distributed func echo(_ bytes: [UInt8]) -> [UInt8] {
        received(bytes)
        return bytes
    }
}
