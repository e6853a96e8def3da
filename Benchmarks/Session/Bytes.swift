import CBenchmark
import Dispatch
import NighLoop

/// Takes the bytes of a stream in a task of the global pool, checks them as a sequence of messages, and answers the
/// last one with a message.
///
/// `@unchecked Sendable`: one task reads the stream.
final class BytesReceiver: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let session: LowLevelSession
    private let checker: ReceiptChecker
    private let tally = ReceiptChecker.tally(peers: 1)
    /// A message. Only the bytes that are checked are filled in: its first ones and its last one.
    private let message: UnsafeMutableRawBufferPointer
    /// How much of the message has come.
    private var position = 0

    /// The bytes that are checked at the beginning of a message.
    private static let headLength = 16

    init(_ setting: BenchmarkSetting) {
        self.setting = setting
        session = setting.session(.server)
        checker = ReceiptChecker(size: setting.size, tally: tally)
        message = .allocate(byteCount: setting.size, alignment: 16)
    }

    func run() {
        setting.accept(
            with: session, onMessage: nil,
            streamOpened: { stream in Task { [self] in await read(stream) } })
        benchmark_wait_for_other_side()
    }

    private func read(_ stream: ByteStream) async {
        do throws(NighError) {
            while let bytes = try await stream.read() {
                guard bytes.withUnsafeBytes(receive) else { continue }
                benchmark_tally_report(tally)
                try session.trySend([1], to: stream.peer)
            }
        } catch {
            BenchmarkSetting.fail("\(error)")
        }
    }

    /// Returns whether the last message has come whole.
    private func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(setting.size - position)
            let head = part.prefix(max(0, Self.headLength - position))
            UnsafeMutableRawBufferPointer(rebasing: message[position...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: head))
            position += part.count
            rest = rest.dropFirst(part.count)
            guard position == setting.size else { break }
            message[setting.size - 1] = part[part.endIndex - 1]
            position = 0
            if checker.receive(UnsafeRawBufferPointer(message)) { return true }
        }
        return false
    }
}

/// Writes to a stream, from a task of the global pool, for as long as the command line says. Ends when the last bytes
/// are answered.
///
/// `@unchecked Sendable`: once connected, one task touches it.
final class BytesSender: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let session: LowLevelSession
    private let outgoing: Outgoing
    private let end = DispatchSemaphore(value: 0)
    private var supply = benchmark_supply()

    init(_ setting: BenchmarkSetting) {
        self.setting = setting
        session = setting.session(.client)
        outgoing = Outgoing(session, size: setting.size)
    }

    func run() {
        setting.call(with: session, onMessage: { [end] _, _ in end.signal() }) { [self] peer in
            Task { await write(to: peer) }
        }
        end.wait()
        benchmark_supply_report(&supply)
    }

    private func write(to peer: PeerID) async {
        do throws(NighError) {
            let stream = try await session.session.peer(peer).openStream(named: "bytes")
            var options = setting.options
            benchmark_supply_begin(&supply, &options)
            while let payload = benchmark_supply_next(&supply) {
                try await stream.write(outgoing.slice(payload))
            }
            stream.finish()
        } catch {
            BenchmarkSetting.fail("\(error)")
        }
    }
}

extension BenchmarkSetting {
    /// Reads a stream to its end, and takes no notice of the bytes.
    static func drain(_ stream: ByteStream) {
        Task {
            do throws(NighError) {
                while try await stream.read() != nil {}
            } catch {
                fail(unlessLeaving: error)
            }
        }
    }

    /// Writes to a new stream for as long as the conversation lasts.
    static func fill(_ session: LowLevelSession, to peer: PeerID) {
        Task {
            let bytes = ByteSlice([UInt8](repeating: 7, count: 64 << 10))
            do throws(NighError) {
                let stream = try await session.session.peer(peer).openStream(named: "beside")
                while true { try await stream.write(bytes) }
            } catch {
                fail(unlessLeaving: error)
            }
        }
    }
}
