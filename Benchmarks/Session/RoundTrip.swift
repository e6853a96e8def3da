import CBenchmark
import Dispatch
import NighLoop

/// Sends back every message.
struct Echo {
    private let setting: BenchmarkSetting

    init(_ setting: BenchmarkSetting) { self.setting = setting }

    func serve() {
        let session = setting.session(.server)
        let handler: MessageHandler = { bytes, origin in
            bytes.withUnsafeBytes { bytes in
                BenchmarkSetting.demand { () throws(NighError) in
                    try session.trySend(bytes, to: origin.peer, setting.reliability)
                }
            }
        }
        setting.accept(with: session, onMessage: setting.reading == .handler ? handler : nil)
        setting.read(session) { peer, bytes in
            BenchmarkSetting.demand { () throws(NighError) in
                try session.trySend(bytes, to: peer, setting.reliability)
            }
        }
        benchmark_wait_for_other_side()
        withExtendedLifetime(session) {}
    }
}

/// Sends one message at a time, and measures the time until each answer.
///
/// `@unchecked Sendable`: once connected, only the code that takes the messages touches it, one message at a time.
final class RoundTripClient: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let session: LowLevelSession
    private let end = DispatchSemaphore(value: 0)
    private let outgoing: Outgoing
    @exclusivity(unchecked) private var trips = benchmark_trips()
    @exclusivity(unchecked) private var peer: PeerID?

    init(_ setting: BenchmarkSetting) {
        self.setting = setting
        session = setting.session(.client)
        outgoing = Outgoing(session, size: setting.size, setting.reliability)
    }

    func connect() {
        let handler: MessageHandler = { [self] bytes, _ in bytes.withUnsafeBytes { receive($0) } }
        setting.call(with: session, onMessage: setting.reading == .handler ? handler : nil) { [self] peer in
            self.peer = peer
            if setting.isBesideStream { BenchmarkSetting.fill(session, to: peer) }
            var options = setting.options
            benchmark_trips_begin(&trips, &options)
            sendNext()
        }
        setting.read(session) { [self] _, bytes in receive(bytes) }
        end.wait()
    }

    @inline(__always)
    private func sendNext() {
        guard let peer else { return }
        outgoing.post(benchmark_trips_next(&trips), to: peer)
    }

    @inline(__always)
    private func receive(_ bytes: UnsafeRawBufferPointer) {
        if benchmark_trips_returned(&trips, bytes.bytes, bytes.count) { return sendNext() }
        benchmark_trips_report(&trips)
        end.signal()
    }
}

/// Sends payloads that stay in place: the session copies small ones, and gets large ones by reference.
///
/// It is constant, and the payloads never change; hence `@unchecked Sendable`.
final class Outgoing: @unchecked Sendable {
    private let session: LowLevelSession
    private let size: Int
    private let isLarge: Bool
    private let slices: [ByteSlice]
    private let reliability: Reliability

    init(_ session: LowLevelSession, size: Int, _ reliability: Reliability = .reliable) {
        self.session = session
        self.reliability = reliability
        self.size = size
        isLarge = size >= 12 << 10
        slices = (0..<UInt64(BENCHMARK_PAYLOADS)).map { number in
            ByteSlice(copying: UnsafeRawBufferPointer(start: benchmark_payload(size, number), count: size))
        }
    }

    /// Returns the payload as a slice: a prepared one, or a copy if it is a mark.
    func slice(_ payload: UnsafePointer<UInt8>) -> ByteSlice {
        let number = benchmark_number(payload)
        if number < UInt64(slices.count) { return slices[Int(number)] }
        return ByteSlice(copying: UnsafeRawBufferPointer(start: payload, count: size))
    }

    @inline(__always)
    func tryPost(_ payload: UnsafePointer<UInt8>, to peer: PeerID) throws(NighError) {
        if isLarge {
            try session.trySend(slice(payload), to: peer, reliability)
        } else {
            try session.trySend(UnsafeRawBufferPointer(start: payload, count: size), to: peer, reliability)
        }
    }

    @inline(__always)
    func post(_ payload: UnsafePointer<UInt8>, to peer: PeerID) {
        BenchmarkSetting.demand { () throws(NighError) in try tryPost(payload, to: peer) }
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes as a pointer for C.
    @inline(__always)
    var bytes: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}
