import CHeap
import Glibc
import NighSystem
import NighTestKit
import NighUV
import Testing

@testable import NighCore
@testable import NighTCP

/// Tests a conversation while large numbers of strangers connect to its session.
@Suite struct FloodTests {
    /// The number of strangers before the first measurement, so that everything that grows only once has grown.
    private static let early = 4_000
    private static let connections = 10_000
    /// The bytes that a stranger may leave on the heap on average. The smallest block has 32 bytes, so this allows one
    /// block for every fourth stranger.
    private static let bytesLeft = 8
    /// The allowed growth of resident memory: one page for every tenth stranger. It varies by 1 MB by itself.
    private static let residentGrowth = 4 << 20

    /// Runs in a process of its own, so that no other test uses descriptors.
    @Test func `Ten thousand strangers cost a conversation nothing`() async {
        await #expect(processExitsWith: .success) { try Self.flood() }
    }

    private static func flood() throws {
        let room = Room()
        // A short handshake timeout, because the session keeps an entry for a stranger until the stranger's time is
        // over.
        let host = try room.join("Host") { $0.timings.handshake = .seconds(5) }
        let guest = try room.join("Guest")
        #expect(try room.call(guest, port: host.port) == .success(host.id))
        let watch = RoundTripWatch(from: guest, to: host)
        let usual = try watch.roundTrips(1_000)
        let descriptors = ProcessGauge.descriptorCount
        let during = RoundTrips()
        var mostStrangers = 0
        var mostDescriptors = 0
        func come(_ count: Int) throws {
            let flood = Flood(of: count, on: host.port)
            try flood.start()
            while !flood.isOver {
                try watch.roundTrip(into: during)
                guard during.count % 20 == 0 else { continue }
                mostStrangers = max(
                    mostStrangers, host.session.loop.call { host.session.inspection.strangers })
                mostDescriptors = max(mostDescriptors, ProcessGauge.descriptorCount)
            }
            flood.join()
            try quiet(room, host)
        }
        try come(early)
        let before = Memory.inUse(by: [host, guest])
        for _ in 0..<2 { try come(connections / 2) }
        let left = Memory.inUse(by: [host, guest])
        let after = try watch.roundTrips(1_000)
        let statistics = try room.statistics(host)

        #expect(left.heap - before.heap < connections * bytesLeft, "\(left.heap - before.heap) bytes")
        #expect(left.resident - before.resident < residentGrowth, "\(left.resident - before.resident) bytes")
        // Most round trips fall between two strangers. Those that wait while a stranger is accepted, or reaches a key
        // exchange, are too few to move the median. The floor allows for what a busy machine adds to some tens of
        // microseconds. When the two threads wait for a processor, strangers accumulate meanwhile, and up to the limit
        // of them are served in one go.
        let floor: Duration = during.wasHeldUp ? .milliseconds(20) : .microseconds(200)
        let bound = max(max(usual.median, after.median) * 2, floor)
        #expect(during.count > 100)
        #expect(during.median <= bound, "\(during.median), usually \(usual.median)")
        #expect(mostStrangers > 0 && mostStrangers <= host.session.configuration.limits.unauthenticatedPipes)
        // Of all strangers: those that wait, those that linger, and both ends of the connections that the flood holds
        // open.
        #expect(mostDescriptors - descriptors <= 64 + TCPTransport.lingeringLimit + Flood.held + 64)
        #expect(ProcessGauge.descriptorCount <= descriptors)
        #expect(statistics.pipesAccepted >= early + connections)
        #expect(statistics.peers.count == 1 && host.state(of: guest.id) == .connected)
        #expect(guest.states(of: host.id).last == .connected)
        try room.exchangeMessages(guest, host)
        let newcomer = try room.join("Newcomer")
        #expect(try room.call(newcomer, port: host.port) == .success(host.id))
    }

    /// Waits until all strangers have gone and are released.
    private static func quiet(_ room: Room, _ host: SessionProbe) throws {
        try room.wait("the strangers to go", inside: host) { $0.inspection.strangers == 0 }
        // The pipes closed by now are released in the loop's next turns.
        for _ in 0..<3 { host.session.loop.call {} }
    }
}

/// Measures round trips without the time in which the two sessions' threads waited for a processor. That time depends
/// on the other programs of the machine and says nothing about the sessions.
private struct RoundTripWatch {
    private let one: SessionProbe
    private let other: SessionProbe
    /// The folders in which the kernel reports on the two threads.
    private let threads: [String]

    init(from one: SessionProbe, to other: SessionProbe) {
        self.one = one
        self.other = other
        threads = [one, other].map { $0.session.loop.call { Self.thread() } }
    }

    /// The folder of the calling thread.
    private static func thread() -> String {
        var name = [CChar](repeating: 0, count: 64)
        let count = readlink("/proc/thread-self", &name, name.count)
        let bytes = name.prefix(max(count, 0)).map(UInt8.init(bitPattern:))
        return "/proc/" + String(decoding: bytes, as: UTF8.self)
    }

    func roundTrip(into times: RoundTrips) throws {
        let before = try waited()
        let result: Result<Duration, NighError> = try waitForReply {
            one.session.ping(other.id, completion: $0)
        }
        try times.add(result.get(), waited: waited() - before)
    }

    func roundTrips(_ count: Int) throws -> RoundTrips {
        let times = RoundTrips()
        for _ in 0..<count { try roundTrip(into: times) }
        return times
    }

    /// The time in which the threads were ready to run but did not run.
    private func waited() throws -> Duration {
        try threads.reduce(.zero) { sum, thread in
            let file = try #require(fopen(thread + "/schedstat", "r"))
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 128)
            try #require(fgets(&line, Int32(line.count), file) != nil)
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            let nanoseconds = try #require(Int64(text.split(separator: " ")[1]))
            return sum + .nanoseconds(nanoseconds)
        }
    }
}

/// The durations of round trips without the waiting, to the microsecond. Needs a fixed amount of memory for any number.
private final class RoundTrips {
    /// The number of round trips for each number of microseconds. The last entry counts all longer ones.
    private var counts = [Int](repeating: 0, count: 20_000)
    private(set) var count = 0

    private var whole = Duration.zero
    private var waited = Duration.zero

    /// Adds a round trip that took `time`, of which `waited` was spent waiting for a processor.
    func add(_ time: Duration, waited: Duration) {
        let own = max(time - waited, .zero)
        counts[min(Int(own / .microseconds(1)), counts.count - 1)] += 1
        count += 1
        whole += time
        self.waited += waited
    }

    /// Whether more than a tenth of the time was spent waiting for a processor.
    var wasHeldUp: Bool { waited * 10 > whole }

    var median: Duration {
        var rest = count / 2
        let microseconds = counts.firstIndex { number in
            rest -= number
            return rest < 0
        }
        return .microseconds(microseconds ?? counts.count)
    }
}

/// The memory that this process uses while it is idle.
private struct Memory {
    let heap: Int
    let resident: Int

    /// Measures between two turns of the loops of these sessions.
    static func inUse(by probes: [SessionProbe]) -> Memory {
        for probe in probes { probe.session.loop.call { fillCache() } }
        fillCache()
        return Memory(heap: heap_bytes_in_use(), resident: ProcessGauge.residentBytes)
    }

    /// Makes the C library keep the maximum number of free blocks for this thread: seven of each size up to 1,032
    /// bytes. It counts them as in use, so filling them later would look like a leak for thousands of strangers.
    private static func fillCache() {
        for size in stride(from: 24, through: 1_032, by: 16) {
            let blocks = (0..<7).map { _ in UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 1) }
            for block in blocks { block.deallocate() }
        }
    }
}

/// Opens connections one after the other on a thread of its own: silent ones, garbage, and handshakes that end
/// half-way.
///
/// `@unchecked Sendable`: the monitor guards everything that changes.
private final class Flood: @unchecked Sendable {
    /// The number of connections that are held open at once, whatever the other side does.
    static let held = 400

    private let count: Int
    private let port: UInt16
    private let thread = LoopThread()
    private let monitor = Monitor()
    private var hasEnded = false

    init(of count: Int, on port: UInt16) {
        self.count = count
        self.port = port
    }

    var isOver: Bool { monitor.read { hasEnded } }

    func start() throws { try thread.start { [self] in run() } }

    func join() { thread.join() }

    private func run() {
        let hello = RawPeer(.dialling).exchange([])
        var random = SeededGenerator(seed: 1)
        var open: [PlainSocket] = []
        for number in 0..<count {
            let socket = PlainSocket(connectedTo: port, from: 0x7F00_0002)
            switch number % 8 {
            case 0, 1: break
            case 2: socket.write((0..<100).map { _ in UInt8.random(in: .min ... .max, using: &random) })
            case 3: socket.write(Array(PrefaceTeller.preface.prefix(5)))
            case 4: socket.write(PrefaceTeller.preface + Array(hello.prefix(hello.count / 2)))
            case 5: socket.write(PrefaceTeller.preface + [UInt8](repeating: 22, count: 20_000))
            default: socket.write(PrefaceTeller.preface + hello)
            }
            open.append(socket)
            if open.count == Self.held { open.removeFirst(Self.held / 2) }
        }
        open.removeAll()
        monitor.change { hasEnded = true }
    }
}
