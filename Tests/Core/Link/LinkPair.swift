@testable import NighCore

/// Two link machines and the wire between them, in virtual time. Bytes arrive at once, cut as the test
/// wants, unless the wire is held up.
final class LinkPair {
    /// A step of a machine, kept for the test.
    enum Note: Equatable {
        case secured
        case opened
        case request(ConversationRequest, isResume: Bool)
        case accepted(ConversationAcceptance)
        case refused(ConversationRefusal)
        case crossed([UInt8])
        case introduced([UInt8])
        case pairing(PairingMessage)
        case acknowledged(Standing)
        case message(Lane, [UInt8])
        case kindMessage(Lane, MessageKind, [UInt8])
        case begin(Lane, Int, MessageKind? = nil)
        case piece(Lane, [UInt8])
        case unreliable([UInt8])
        case streamData([UInt8])
        case streamControl(StreamControlFrame)
        case pong(UInt64, Moment.Span)
        case suspected
        case responsiveAgain
        case closed(LinkMachine.LinkEnd)
    }

    final class End {
        var machine: LinkMachine
        var notes: [Note] = []
        /// The time of each note.
        var times: [Moment] = []
        /// The bytes that it wrote and the wire has not delivered yet.
        var wire = ByteQueue()
        /// Whether the wire accepts what this end writes, but delivers nothing.
        var isHeldUp = false
        private let clock: Clock

        fileprivate init(_ machine: consuming LinkMachine, _ clock: Clock) {
            self.machine = machine
            self.clock = clock
        }

        fileprivate func note(_ note: Note) {
            notes.append(note)
            times.append(clock.now)
        }

        /// Feeds bytes to the machine, and records its steps.
        func receive(_ bytes: [UInt8]) { receive(ByteSlice(bytes)) }

        func receive(_ type: FrameType, _ payload: [UInt8] = []) { receive(Frames.frame(type, payload)) }

        func receive(_ slice: ByteSlice) {
            machine.receive(slice, now: clock.now)
            step()
        }

        func ping(_ token: UInt64, _ payload: [UInt8] = []) {
            machine.ping(token: token, payload: payload, now: clock.now)
        }

        /// Lets the machine learn the time, and records its steps.
        func timeArrives() {
            if machine.timeArrived(now: clock.now) { note(.suspected) }
            step()
        }

        func step() {
            while let step = machine.next(now: clock.now) {
                switch step {
                case .secured: note(.secured)
                case .opened: note(.opened)
                case .request(let request, let isResume): note(.request(request, isResume: isResume))
                case .accepted(let acceptance): note(.accepted(acceptance))
                case .refused(let refusal): note(.refused(refusal))
                case .crossed(let context): note(.crossed(context))
                case .introduced(let introduction): note(.introduced(introduction))
                case .pairing(let message): note(.pairing(message))
                case .acknowledged: note(.acknowledged(machine.peerStanding))
                case .message(let lane, let frame): note(.message(lane, Array(frame.bytes)))
                case .kindMessage(let lane, let kind, let frame):
                    note(.kindMessage(lane, kind, Array(frame.bytes)))
                case .begin(let lane, let size, let kind): note(.begin(lane, size, kind))
                case .piece(let lane, let frame): note(.piece(lane, Array(frame.bytes)))
                case .unreliable(let frame): note(.unreliable(Array(frame.bytes)))
                case .streamData(let frame): note(.streamData(Array(frame.bytes)))
                case .streamControl(let frame, _): note(.streamControl(frame))
                case .datagrams: break
                case .pong(let token, let span): note(.pong(token, span))
                case .responsiveAgain: note(.responsiveAgain)
                case .closed(let end): note(.closed(end))
                }
            }
        }

        /// Everything that it has to write now.
        func gather(budget: Int = 1 << 20) -> [UInt8] {
            var queue = ByteQueue()
            machine.gather(into: &queue, budget: budget)
            return queue.bytes
        }

        var wantsToRead: Bool { machine.wantsToRead }

        var closed: LinkMachine.LinkEnd? {
            for case .closed(let end) in notes { return end }
            return nil
        }

        /// The notes without the answer to the automatic ping.
        var plainNotes: [Note] {
            notes.filter {
                if case .pong(let token, _) = $0 { return token < 1 << 63 }
                return true
            }
        }
    }

    let dialling: End
    let accepting: End
    private let clock = Clock()
    private let split: (() -> Int)?
    /// The time that bytes take from one end to the other.
    var latency = Moment.Span.zero

    /// The time for both ends.
    final class Clock {
        var now = Moment(nanoseconds: 1_000)
    }

    var now: Moment {
        get { clock.now }
        set { clock.now = newValue }
    }

    init(
        dialling: LinkMachine.Settings = LinkPair.settings(seed: 1), expected: PeerID? = nil,
        accepting: LinkMachine.Settings = LinkPair.settings(seed: 2), split: (() -> Int)? = nil
    ) {
        let now = clock.now
        self.dialling = End(
            LinkMachine(side: .dialling, settings: dialling, expected: expected, now: now), clock)
        self.accepting = End(LinkMachine(side: .accepting, settings: accepting, now: now), clock)
        self.split = split
    }

    /// The end of this side, and the other one.
    func ends(_ side: LinkSide) -> (End, End) {
        side == .dialling ? (dialling, accepting) : (accepting, dialling)
    }

    static func settings(
        seed: UInt8, hello: Hello? = nil, security: Preface.Security = .plaintext,
        adjust: (inout LinkTimings) -> Void = { _ in },
        makeChannel: @escaping @Sendable () -> any SecureChannel = { PlaintextChannel() }
    ) -> LinkMachine.Settings {
        var timings = SessionTimings().link
        adjust(&timings)
        return LinkMachine.Settings(
            hello: hello ?? Frames.hello(seed: seed), timings: timings,
            offer: SecureChannelOffer(accepted: security) { _, _, _, _ in makeChannel() })
    }

    /// Returns a pair whose hellos are exchanged and whose first pings are answered.
    static func open(makeChannel: @escaping @Sendable () -> any SecureChannel = { PlaintextChannel() })
        throws -> LinkPair
    {
        let pair = LinkPair(dialling: settings(seed: 1, makeChannel: makeChannel))
        try pair.deliverAll()
        for end in [pair.dialling, pair.accepting] {
            end.notes = []
            end.times = []
        }
        return pair
    }

    /// Returns how the accepting end of an open link closes because of these bytes, if it does.
    static func end(after bytes: [UInt8]) throws -> LinkMachine.LinkEnd? {
        let pair = try open()
        pair.accepting.receive(bytes)
        return pair.accepting.closed
    }

    struct NeverQuiet: Error {}

    /// Delivers what is written in both directions until both sides are quiet.
    func deliverAll() throws {
        for _ in 0..<1_000 {
            var didMove = false
            for (from, to) in [(dialling, accepting), (accepting, dialling)] {
                from.machine.gather(into: &from.wire, budget: 1 << 20)
                guard !from.isHeldUp, !from.wire.isEmpty else { continue }
                now = now + latency
                while let slice = from.wire.popFirst(atMost: split?() ?? .max) { to.receive(slice) }
                didMove = true
            }
            if !didMove { return }
        }
        throw NeverQuiet()
    }

    /// Lets time pass, from one deadline to the next.
    func pass(_ duration: Duration) throws {
        let end = now + Moment.Span(duration)
        try deliverAll()
        for _ in 0..<1_000_000 {
            let next = min(dialling.machine.deadline, accepting.machine.deadline)
            guard next <= end else {
                now = max(now, end)
                return try deliverAll()
            }
            now = max(now, next)
            for end in [dialling, accepting] { end.timeArrives() }
            try deliverAll()
        }
        throw NeverQuiet()
    }
}

/// A channel that changes no bytes, counts how often it is told to release memory, and may fail at once.
final class CountingChannel: SecureChannel {
    private let inner = PlaintextChannel()
    private let failure: NighError?
    private(set) var releases = 0
    private(set) var receipts = 0

    init(failing failure: NighError? = nil) { self.failure = failure }

    var isEstablished: Bool { inner.isEstablished }
    var provenPeer: PeerID? { nil }
    var wasResumed: Bool { false }
    var heldByteCount: Int { inner.heldByteCount }
    func begin(wire: inout ByteQueue) throws(NighError) {
        if let failure { throw failure }
        inner.begin(wire: &wire)
    }
    func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) throws(NighError) {
        receipts += 1
        inner.receive(bytes, plain: &plain, wire: &wire)
    }
    func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) { inner.seal(&plain, into: &wire) }
    func end(wire: inout ByteQueue) { inner.end(wire: &wire) }
    func keyingMaterial(label: String, context: [UInt8], count: Int) -> SecretBytes? { nil }
    var datagramProtection: DatagramProtection { .checksum }
    func sendTicket(wire: inout ByteQueue) {}
    func takeTicket() -> ResumptionTicket? { nil }
    func releaseIdleMemory() { releases += 1 }
}
