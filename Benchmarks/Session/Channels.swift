import CBenchmark
import Dispatch
import Nigh

/// One side of a channel, through which tasks of the global pool send and read, as programs of `import Nigh` do.
///
/// `@unchecked Sendable`: once connected, one task touches it.
final class ChannelSide: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let session: Session
    private let channel: Channel
    private let outgoing: PreparedPayloads
    private let end = DispatchSemaphore(value: 0)

    init(_ setting: BenchmarkSetting) {
        self.setting = setting
        outgoing = PreparedPayloads(size: setting.size)
        session = setting.taskSession()
        channel = BenchmarkSetting.demand { [session] () throws(NighError) in try session.channel("bench") }
    }

    // MARK: The side that answers

    /// Sends back every message, or checks a stream of them and answers the last one.
    func serve() {
        setting.accept(with: session)
        Task { [self] in
            let tally = ReceiptChecker.tally(peers: 1)
            let checker = ReceiptChecker(size: setting.size, tally: tally)
            for await message in channel.messages {
                let peer = session.peer(message.sender)
                if setting.options.work == BENCHMARK_ROUND_TRIP {
                    await send(message.bytes, to: peer)
                } else if message.payload.withUnsafeBytes({ checker.receive($0) }) {
                    benchmark_tally_report(tally)
                    await send([1], to: peer)
                }
            }
        }
        benchmark_wait_for_other_side()
    }

    // MARK: The side that calls

    func call() {
        Task { [self] in
            let peer = await setting.invite(with: session)
            if setting.options.work == BENCHMARK_ROUND_TRIP {
                await exchange(with: peer)
            } else {
                await stream(to: peer)
            }
            end.signal()
        }
        end.wait()
    }

    private func exchange(with peer: Peer) async {
        var trips = benchmark_trips()
        var options = setting.options
        var answers = channel.messages.makeAsyncIterator()
        benchmark_trips_begin(&trips, &options)
        repeat {
            await send(outgoing.bytes(benchmark_trips_next(&trips)), to: peer)
        } while await answers.next()?.payload.withUnsafeBytes {
            benchmark_trips_returned(&trips, $0.bytes, $0.count)
        } ?? false
        benchmark_trips_report(&trips)
    }

    private func stream(to peer: Peer) async {
        var supply = benchmark_supply()
        var options = setting.options
        benchmark_supply_begin(&supply, &options)
        while let payload = benchmark_supply_next(&supply) { await send(outgoing.bytes(payload), to: peer) }
        for await _ in channel.messages { break }
        benchmark_supply_report(&supply)
    }

    private func send(_ bytes: [UInt8], to peer: Peer) async {
        do throws(NighError) {
            try await channel.send(bytes: bytes, to: peer)
        } catch {
            BenchmarkSetting.fail(unlessLeaving: error)
        }
    }
}

/// Payloads as arrays, made once.
struct PreparedPayloads {
    private let size: Int
    private let arrays: [[UInt8]]

    init(size: Int) {
        self.size = size
        arrays = (0..<UInt64(BENCHMARK_PAYLOADS)).map { number in
            Array(UnsafeRawBufferPointer(start: benchmark_payload(size, number), count: size))
        }
    }

    /// Returns the payload: a prepared one, or a copy if it is a mark.
    func bytes(_ payload: UnsafePointer<UInt8>) -> [UInt8] {
        let number = benchmark_number(payload)
        if number < UInt64(arrays.count) { return arrays[Int(number)] }
        return Array(UnsafeRawBufferPointer(start: payload, count: size))
    }
}
