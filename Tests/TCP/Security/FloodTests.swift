import Glibc
import NighTestKit
import NighUV
import Testing

@testable import NighCore
@testable import NighTCP

/// Strangers in large numbers beside a conversation.
@Suite struct FloodTests {
    private static let connections = 10_000

    /// In a process of its own, whose descriptors nobody else uses.
    @Test func tenThousandStrangersCostAConversationNothing() async {
        await #expect(processExitsWith: .success) { try Self.flood() }
    }

    private static func flood() throws {
        let room = Room()
        // What reminds the session of a stranger's time is forgotten when that has passed.
        let host = try room.join("Host") { $0.timings.handshake = .seconds(2) }
        let guest = try room.join("Guest")
        #expect(try room.call(guest, port: host.port) == .success(host.id))
        let usual = try (0..<1_000).map { _ in try roundTrip(guest, host) }
        let descriptors = ProcessGauge.descriptorCount
        var during: [Duration] = []
        var mostStrangers = 0
        var mostDescriptors = 0
        for _ in 0..<2 {
            let flood = Flood(of: connections / 2, on: host.port)
            try flood.start()
            while !flood.isOver {
                during.append(try roundTrip(guest, host))
                guard during.count % 20 == 0 else { continue }
                let session = host.session
                mostStrangers = max(
                    mostStrangers,
                    try Room.answer { told in session.loop.execute { told(session.inspection.strangers) } })
                mostDescriptors = max(mostDescriptors, ProcessGauge.descriptorCount)
            }
            flood.join()
            try quiet(room, host)
        }
        let after = try (0..<1_000).map { _ in try roundTrip(guest, host) }
        let statistics = try room.statistics(host)

        // A connection costs the session's loop some tenths of a millisecond (accepting it; half of them also get as far as
        // a key exchange and a signature), and a round trip that comes in between waits for one: that much is the slack. A
        // session that worked through what strangers say before it looks at its peers would be at many times that.
        let bound = max(median(usual), median(after)) * 2 + .milliseconds(2)
        #expect(during.count > 100 && median(during) <= bound)
        #expect(mostStrangers > 0 && mostStrangers <= host.session.configuration.limits.unauthenticatedPipes)
        // Of the 10,000: those that wait, those that linger, and both ends of what the flood holds open.
        #expect(mostDescriptors - descriptors <= 64 + TCPTransport.lingeringLimit + Flood.held + 64)
        #expect(ProcessGauge.descriptorCount <= descriptors)
        #expect(statistics.pipesAccepted >= connections)
        #expect(statistics.peers.count == 1 && host.state(of: guest.id) == .connected)
        #expect(guest.moves(of: host.id).last == .connected)
        try room.talk(guest, host)
        let newcomer = try room.join("Newcomer")
        #expect(try room.call(newcomer, port: host.port) == .success(host.id))
    }

    /// The strangers have gone, and nothing of them lingers.
    private static func quiet(_ room: Room, _ host: SessionProbe) throws {
        try room.wait("the strangers to go", inside: host) { $0.inspection.strangers == 0 }
        let session = host.session
        // What is closed by now lies in the loop's next turns.
        for _ in 0..<3 { _ = try Room.answer { told in session.loop.execute { told(true) } } }
    }

    private static func roundTrip(_ one: SessionProbe, _ other: SessionProbe) throws -> Duration {
        let result: Result<Duration, NighError> = try Room.answer { one.session.ping(other.id, whenDone: $0) }
        return try result.get()
    }

    private static func median(_ times: [Duration]) -> Duration {
        times.isEmpty ? .seconds(1_000) : times.sorted()[times.count / 2]
    }
}

/// Connections one after the other from a thread of its own: silent ones, garbage, and handshakes that end half-way.
///
/// `@unchecked Sendable`: what changes is guarded by the monitor.
private final class Flood: @unchecked Sendable {
    /// So many are held open at once, whatever the other side does.
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
