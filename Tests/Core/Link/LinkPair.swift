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
        let machine: LinkMachine
        var notes: [Note] = []
        /// The time of each note.
        var times: [Moment] = []
        /// What it wrote and the wire has not delivered yet.
        var wire = ByteQueue()
        /// Whether the wire accepts what this end writes, but delivers nothing.
        var isHeldUp = false

        init(_ machine: LinkMachine) { self.machine = machine }

        func note(_ note: Note, _ now: Moment) {
            notes.append(note)
            times.append(now)
        }

        /// Feeds bytes to the machine, and records its steps.
        func receive(_ bytes: [UInt8], now: Moment) { receive(ByteSlice(bytes), now: now) }

        func receive(_ slice: ByteSlice, now: Moment) {
            machine.receive(slice, now: now)
            step(now: now)
        }

        func step(now: Moment) {
            while let step = machine.next(now: now) {
                switch step {
                case .secured: note(.secured, now)
                case .opened: note(.opened, now)
                case .request(let request, let isResume): note(.request(request, isResume: isResume), now)
                case .accepted(let acceptance): note(.accepted(acceptance), now)
                case .refused(let refusal): note(.refused(refusal), now)
                case .crossed(let context): note(.crossed(context), now)
                case .introduced(let introduction): note(.introduced(introduction), now)
                case .pairing(let message): note(.pairing(message), now)
                case .acknowledged: note(.acknowledged(machine.peerStanding), now)
                case .message(let lane, let frame): note(.message(lane, Array(frame.bytes)), now)
                case .kindMessage(let lane, let kind, let frame):
                    note(.kindMessage(lane, kind, Array(frame.bytes)), now)
                case .begin(let lane, let size, let kind): note(.begin(lane, size, kind), now)
                case .piece(let lane, let frame): note(.piece(lane, Array(frame.bytes)), now)
                case .unreliable(let frame): note(.unreliable(Array(frame.bytes)), now)
                case .streamData(let frame): note(.streamData(Array(frame.bytes)), now)
                case .streamControl(let frame, _): note(.streamControl(frame), now)
                case .datagrams: break
                case .pong(let token, let span): note(.pong(token, span), now)
                case .responsiveAgain: note(.responsiveAgain, now)
                case .closed(let end): note(.closed(end), now)
                }
            }
        }

        /// Everything that it has to write now.
        func gather(budget: Int = 1 << 20) -> [UInt8] {
            var queue = ByteQueue()
            machine.gather(into: &queue, budget: budget)
            return queue.bytes
        }

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
    var now = Moment(nanoseconds: 1_000)
    private let split: (() -> Int)?
    /// The time that bytes take from one end to the other.
    var latency = Moment.Span.zero

    init(
        dialling: LinkMachine.Settings = LinkPair.settings(seed: 1), expected: PeerID? = nil,
        accepting: LinkMachine.Settings = LinkPair.settings(seed: 2), split: (() -> Int)? = nil
    ) {
        self.dialling = End(LinkMachine(side: .dialling, settings: dialling, expected: expected, now: now))
        self.accepting = End(LinkMachine(side: .accepting, settings: accepting, now: now))
        self.split = split
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
    static func open(
        adjust: (inout LinkTimings) -> Void = { _ in }
    ) throws -> LinkPair {
        let pair = LinkPair(
            dialling: settings(seed: 1, adjust: adjust), accepting: settings(seed: 2, adjust: adjust))
        try pair.deliverAll()
        for end in [pair.dialling, pair.accepting] {
            end.notes = []
            end.times = []
        }
        return pair
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
                while let slice = from.wire.popFirst(atMost: split?() ?? .max) { to.receive(slice, now: now) }
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
            for end in [dialling, accepting] {
                if end.machine.timeArrived(now: now) { end.note(.suspected, now) }
                end.step(now: now)
            }
            try deliverAll()
        }
        throw NeverQuiet()
    }
}
