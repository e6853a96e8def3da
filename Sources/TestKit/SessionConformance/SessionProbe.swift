import NighCore
import NighMemory

extension SessionTimings {
    /// For sessions on real threads: no bound that a machine too busy to give them a turn for minutes could reach.
    package static var patient: SessionTimings {
        var timings = SessionTimings()
        timings.askAfter = .seconds(600)
        timings.loseAfter = .seconds(1_800)
        timings.handshake = .seconds(600)
        timings.dial = .seconds(600)
        timings.grace = .seconds(600)
        timings.goodbye = .seconds(600)
        return timings
    }
}

/// One session with what it was told. Its handlers only write down; whoever holds it acts from outside, or sets a
/// reaction.
///
/// What it records is guarded by a monitor, so that it can be read while the session runs on another thread.
package final class SessionProbe: @unchecked Sendable {
    /// Who reads the messages.
    package enum Reading: Sendable {
        /// The handler does, at once.
        case handler
        /// Nobody does, until the session's `messages` are asked.
        case inbox
    }

    /// A message that was kept.
    package typealias Received = (origin: MessageOrigin, bytes: [UInt8])

    /// Counts the sessions of a place from 1.
    package let number: Int
    /// The session.
    package let session: Session
    /// The faults on its transport.
    package let faults: FaultControl

    private let monitor: Monitor
    private var recordedEvents: [SessionEvent] = []
    private var recordedMessages: [Received] = []
    private var recordedOutcomes: [Result<PeerID, NighError>] = []
    private var recordedListening: [TransportAddress] = []
    private var toldStates: [PeerID: PeerState] = [:]
    private var eventReaction: ((SessionEvent, Session) -> Void)?
    private var messageAnswer: (([UInt8], MessageOrigin, Session) -> Void)?
    private var sessionIsClosed = false

    /// Told what no session may do, and what its transport did that none may. Set before the start.
    package var violated: (String) -> Void = { _ in }
    /// Judges a message in place; false when it is to be kept. Set before the start.
    var judge: (UnsafeRawBufferPointer, MessageOrigin) -> Bool = { _, _ in false }

    init(number: Int, session: Session, faults: FaultControl, monitor: Monitor) {
        self.number = number
        self.session = session
        self.faults = faults
        self.monitor = monitor
    }

    /// A probe of its own, `number` in its place, of a session that has not been started.
    package convenience init(number: Int, session: Session, faults: FaultControl) {
        self.init(number: number, session: session, faults: faults, monitor: Monitor())
    }

    /// Starts the session; with `accepting` it says yes to every invitation.
    package func start(reading: Reading, accepting: Bool) {
        if accepting {
            reaction = { event, session in
                if case .invited(let invitation) = event { session.accept(invitation) }
            }
        }
        let onMessage: MessageHandler = { [weak self] bytes, origin in
            bytes.withUnsafeBytes { self?.received($0, origin) }
        }
        session.start(
            onEvent: { [weak self] in self?.took($0) }, onMessage: reading == .handler ? onMessage : nil)
    }

    /// Who the session is.
    package var id: PeerID { session.id }
    /// All it was told, in order.
    package var events: [SessionEvent] { monitor.read { recordedEvents } }
    /// What it received and was not judged in place.
    package var messages: [Received] { monitor.read { recordedMessages } }
    /// Those as text.
    package var texts: [String] { messages.map { String(decoding: $0.bytes, as: UTF8.self) } }
    /// What came of calls, for whoever puts it here.
    package var outcomes: [Result<PeerID, NighError>] {
        get { monitor.read { recordedOutcomes } }
        set { monitor.change { recordedOutcomes = newValue } }
    }
    /// Where it listens.
    package var listening: [TransportAddress] { monitor.read { recordedListening } }
    /// Whether it is known to be closed.
    package var isClosed: Bool { monitor.read { sessionIsClosed } }

    /// What it does about an event, on its loop.
    package var reaction: ((SessionEvent, Session) -> Void)? {
        get { monitor.read { eventReaction } }
        set { monitor.change { eventReaction = newValue } }
    }
    /// What it does about a message that is kept, on its loop.
    package var messageReaction: (([UInt8], MessageOrigin, Session) -> Void)? {
        get { monitor.read { messageAnswer } }
        set { monitor.change { messageAnswer = newValue } }
    }

    /// How it stands with a peer, as it was told.
    package func state(of peer: PeerID) -> PeerState { monitor.read { toldStates[peer] ?? .unavailable } }

    /// Waits in real time until something of what it was told is so; whether that came.
    package func wait(_ isTrue: (SessionProbe) -> Bool) -> Bool {
        monitor.wait(within: .seconds(20)) { isTrue(self) }
    }

    /// The states a peer went through here, in order.
    package func moves(of peer: PeerID) -> [PeerState] {
        events.compactMap {
            if case .stateChanged(let changed, _, _) = $0, changed.id == peer { changed.state } else { nil }
        }
    }

    /// Why the peer came into its latest state.
    package func lastCause(of peer: PeerID) -> NighError? {
        for case .stateChanged(let changed, _, let cause) in events.reversed()
        where changed.id == peer && cause != nil {
            return cause
        }
        return nil
    }

    /// Why conversations with the peer ended, in order.
    func endings(with peer: PeerID) -> [NighError.Cause] {
        events.compactMap {
            if case .stateChanged(let changed, _, let cause?) = $0, changed.id == peer,
                changed.state == .disconnected
            {
                cause.cause
            } else {
                nil
            }
        }
    }

    /// The peer as it was last told.
    package func peer(_ id: PeerID) -> Peer? {
        for event in events.reversed() {
            switch event {
            case .stateChanged(let peer, _, _) where peer.id == id,
                .peerChanged(let peer) where peer.id == id,
                .paired(let peer) where peer.id == id:
                return peer
            default: continue
            }
        }
        return nil
    }

    /// The invitations it got.
    package var invitations: [Invitation] {
        events.compactMap { if case .invited(let invitation) = $0 { invitation } else { nil } }
    }

    /// Which of them ended unanswered, and why.
    package var endedInvitations: [(invitation: Invitation, cause: NighError.Cause)] {
        events.compactMap {
            if case .invitationEnded(let invitation, let cause) = $0 {
                (invitation, cause.cause)
            } else {
                nil
            }
        }
    }

    /// Reads what waits in the inbox as if a handler were told of it; returns how many messages that were.
    @discardableResult
    func readInbox() -> Int {
        var count = 0
        while let message = session.messages.poll() {
            message.payload.withUnsafeBytes { record($0, message.origin) }
            count += 1
        }
        return count
    }

    /// The session is closed; from here on it may tell nothing.
    func noteClosed() { monitor.change { sessionIsClosed = true } }

    private func took(_ event: SessionEvent) {
        if isClosed { violated("session \(number) told \(event) after its close") }
        monitor.change {
            recordedEvents.append(event)
            switch event {
            case .stateChanged(let peer, let before, _):
                if toldStates[peer.id] ?? .unavailable != before || !before.mayMove(to: peer.state) {
                    violated("session \(number) told of a move from \(before) to \(peer.state)")
                }
                toldStates[peer.id] = peer.state
            case .listening(_, let addresses): recordedListening = addresses
            case .transportChanged(_, .down(let error)):
                if case .contractBroken = error.cause { violated("session \(number): \(error)") }
            default: break
            }
        }
        reaction?(event, session)
    }

    private func received(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        if isClosed { violated("session \(number) received a message after its close") }
        record(bytes, origin)
    }

    private func record(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        if judge(bytes, origin) { return }
        let copy = Array(bytes)
        monitor.change { recordedMessages.append((origin, copy)) }
        messageReaction?(copy, origin, session)
    }
}
