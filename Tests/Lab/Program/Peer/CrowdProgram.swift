import CHeap
import Glibc
import NighLoop
import NighTestKit
import NighUV

/// Opens a thousand conversations of one session and cuts all at once, three times, in one process. Afterwards, the
/// numbers of descriptors and bytes must be as before. Prints the numbers, and ends with status 1 if something stays.
enum CrowdProgram {
    static let name = "hold-crowd"
    static let peers = 1_000
    private static let rounds = 3
    /// The number of calls at the same time. A session admits only a limited number of unknown peers at once.
    private static let wave = 40
    /// The bytes that the first round may keep for each conversation: the record of a known peer.
    private static let keptBytes = 12_288
    /// The bytes that each later round may add for each conversation: pools and tables grow a little, depending on
    /// timing.
    private static let addedBytes = 1_024

    static func main() -> Int32 {
        do {
            try run()
            return 0
        } catch {
            CommandLineOfLab.complain("lab crowd: \(error)")
            return 1
        }
    }

    private struct Count {
        let descriptors: Int
        let bytes: Int

        /// Descriptors of other kinds belong to the language's runtime, which opens them when it needs them.
        private static func isSocket(_ descriptor: Int32) -> Bool {
            var status = stat()
            return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
        }

        static var now: Count {
            Count(descriptors: (3..<Int32(8 * peers)).count(where: isSocket), bytes: heap_bytes_in_use())
        }
    }

    private static func run() throws {
        let hub = Member("Hub", loop: UVEventLoop())
        let loop = UVEventLoop()
        let guests = (0..<peers).map { Member("Guest \($0)", loop: loop) }
        for guest in guests { try guest.wait("to have started") { $0.isReady } }
        var afterFirst = 0
        for round in 1...rounds {
            hub.session.startAdvertising()
            try hub.wait("to listen") { $0.address != nil }
            let before = Count.now
            for start in stride(from: 0, to: peers, by: wave) {
                let calling = guests[start..<min(start + wave, peers)]
                for guest in calling { guest.call(hub) }
                for guest in calling { try guest.wait("to be connected") { $0.connected == 1 } }
            }
            try hub.wait("to be connected to all") { $0.connected == peers }
            let during = Count.now
            hub.session.stopAdvertising()
            try hub.wait("to be hidden") { $0.address == nil }
            hub.cut()
            for member in guests + [hub] { try member.wait("to be alone") { $0.connected == 0 } }
            let after = waitForCount(before)
            for (words, count) in [("with all connected", during), ("once all were cut", after)] {
                print("round \(round): \(count.descriptors) descriptors, \(count.bytes / 1024) KiB \(words)")
            }
            guard during.descriptors - before.descriptors >= 2 * peers else {
                throw Failure("not all were connected")
            }
            guard after.descriptors <= before.descriptors else {
                throw Failure("\(after.descriptors - before.descriptors) descriptors stay")
            }
            // Memory that the first round allocates once is no leak; memory that each later round adds is one.
            if round == 1 { afterFirst = after.bytes }
            let (added, allowed) =
                round == 1
                ? (after.bytes - before.bytes, peers * keptBytes)
                : (after.bytes - afterFirst, (round - 1) * peers * addedBytes)
            guard added < allowed else { throw Failure("\(added) bytes stay after round \(round)") }
        }
    }

    /// Waits for the sockets: they are closed soon after the events, and those that linger some time later.
    private static func waitForCount(_ goal: Count) -> Count {
        let clock = LoadAdjustedClock()
        while Count.now.descriptors > goal.descriptors, clock.elapsed < .seconds(15) {
            usleep(50_000)
            clock.advance()
        }
        return .now
    }
}

/// A session that waits for its events.
///
/// `@unchecked Sendable`: the monitor guards the state.
private final class Member: @unchecked Sendable {
    let session: Session
    private let name: String
    private let faults: FaultControl
    private let loop: UVEventLoop
    private let monitor = Monitor()
    private var state = State()

    struct State {
        var address: TransportAddress?
        var connected = 0
        var failure: NighError?
        var isReady = false
    }

    init(_ name: String, loop: UVEventLoop) {
        self.name = name
        self.loop = loop
        let transport = FaultyTransport(TCPTransport(TCPOptions(interface: "lo", discovery: .off)))
        faults = transport.control
        var configuration = SessionConfiguration(
            service: "crowd", name: DisplayName(fitting: name), role: .client)
        configuration.limits.peers = CrowdProgram.peers
        configuration.timings.grace = .seconds(1)
        // So many handshakes run at once that the last ones wait on a busy machine.
        configuration.timings.dial = .seconds(60)
        configuration.timings.handshake = .seconds(60)
        configuration.timings.loseAfter = .seconds(60)
        session = Session(configuration, identity: .ephemeral(), transports: [transport], loop: loop)
        session.start(onEvent: { [weak self] in self?.handle($0) }, onMessage: { _, _ in })
        session.statistics { [self] _ in monitor.change { state.isReady = true } }
    }

    private func handle(_ event: SessionEvent) {
        if case .invited(let invitation) = event { invitation.accept() }
        monitor.change {
            switch event {
            case .listening(_, let addresses): state.address = addresses.first
            case .connected: state.connected += 1
            case .disconnected: state.connected -= 1
            default: break
            }
        }
    }

    func wait(_ words: String, until isTrue: (State) -> Bool) throws {
        let isInTime = monitor.wait(within: .seconds(60)) { state.failure != nil || isTrue(state) }
        if let failure = monitor.read({ state.failure }) { throw failure }
        guard isInTime else { throw Failure("\(name) waited in vain \(words)") }
    }

    func call(_ hub: Member) {
        guard let address = hub.monitor.read({ hub.state.address }) else { return }
        session.invite(at: address) { [self] result in
            if case .failure(let error) = result { monitor.change { state.failure = error } }
        }
    }

    /// Cuts all pipes at once.
    func cut() { loop.execute { [faults] in faults.cut() } }
}
