import NighCore
import NighMemory

extension SessionTimings {
    /// Timings for sessions on real threads. No limit expires even if a busy machine does not run the threads for
    /// minutes.
    package static var patient: SessionTimings {
        var timings = SessionTimings()
        timings.pingAfter = .seconds(600)
        timings.loseAfter = .seconds(1_800)
        timings.handshake = .seconds(600)
        timings.dial = .seconds(600)
        timings.grace = .seconds(600)
        timings.goodbye = .seconds(600)
        return timings
    }
}

/// A session with a record of its events and messages. Its handlers only record; a test acts from outside, or sets a
/// reaction.
///
/// A monitor guards the record, so that it can be read while the session runs on another thread.
package final class SessionProbe: @unchecked Sendable {
    /// How the messages are read.
    package enum Reading: Sendable {
        /// By the handler, at once.
        case handler
        /// Not before a test reads the session's `messages`.
        case inbox
    }

    /// A recorded message.
    package typealias Received = (origin: MessageOrigin, bytes: [UInt8])

    /// The session's number; a test counts its sessions from 1.
    package let number: Int
    /// The session.
    package let session: Session
    /// Controls the faults on its transport.
    package let faults: FaultControl

    private let monitor: Monitor
    private var recordedEvents: [SessionEvent] = []
    private var recordedMessages: [Received] = []
    private var recordedOutcomes: [Result<PeerID, NighError>] = []
    private var recordedListening: [TransportAddress] = []
    private var checker = PeerStateChecker()
    private var eventReaction: ((SessionEvent, Session) -> Void)?
    private var messageAnswer: (([UInt8], MessageOrigin, Session) -> Void)?
    private var sessionIsClosed = false

    /// Called with each violation by the session or its transport. Set before the start.
    package var onViolation: (String) -> Void = { _ in }
    /// Checks a message in place. Returns false if the message is to be recorded. Set before the start.
    var checkMessage: (UnsafeRawBufferPointer, MessageOrigin) -> Bool = { _, _ in false }

    init(number: Int, session: Session, faults: FaultControl, monitor: Monitor) {
        self.number = number
        self.session = session
        self.faults = faults
        self.monitor = monitor
    }

    /// Creates a probe with a monitor of its own, for a session that has not been started.
    package convenience init(number: Int, session: Session, faults: FaultControl) {
        self.init(number: number, session: session, faults: faults, monitor: Monitor())
    }

    /// Starts the session. With `accepting`, it accepts every invitation.
    package func start(reading: Reading, accepting: Bool) {
        if accepting {
            reaction = { event, session in
                if case .invited(let invitation) = event { invitation.accept() }
            }
        }
        let onMessage: MessageHandler = { [weak self] bytes, origin in
            bytes.withUnsafeBytes { self?.received($0, origin) }
        }
        session.start(
            onEvent: { [weak self] in self?.record($0) }, onMessage: reading == .handler ? onMessage : nil)
    }

    /// The session's PeerID.
    package var id: PeerID { session.id }
    /// All events of the session, in order.
    package var events: [SessionEvent] { monitor.read { recordedEvents } }
    /// The received messages that were not checked in place.
    package var messages: [Received] { monitor.read { recordedMessages } }
    /// The same messages as text.
    package var texts: [String] { messages.map { String(decoding: $0.bytes, as: UTF8.self) } }
    /// The results of calls; tests add them.
    package var outcomes: [Result<PeerID, NighError>] {
        get { monitor.read { recordedOutcomes } }
        set { monitor.change { recordedOutcomes = newValue } }
    }
    /// The addresses at which the session listens.
    package var listening: [TransportAddress] { monitor.read { recordedListening } }
    /// Whether the session is known to be closed.
    package var isClosed: Bool { monitor.read { sessionIsClosed } }

    /// Called for each event, on the session's loop.
    package var reaction: ((SessionEvent, Session) -> Void)? {
        get { monitor.read { eventReaction } }
        set { monitor.change { eventReaction = newValue } }
    }
    /// Called for each recorded message, on the session's loop.
    package var messageReaction: (([UInt8], MessageOrigin, Session) -> Void)? {
        get { monitor.read { messageAnswer } }
        set { monitor.change { messageAnswer = newValue } }
    }

    /// Returns the state of a peer as last reported.
    package func state(of peer: PeerID) -> PeerState { monitor.read { checker.state(of: peer) } }

    /// Waits in real time until `isTrue` returns true, for at most 20 s as `LoadAdjustedClock` measures it. Returns
    /// whether it became true.
    package func wait(_ isTrue: (SessionProbe) -> Bool) -> Bool {
        monitor.wait(within: .seconds(20)) { isTrue(self) }
    }

    /// Returns the states that were reported of a peer, in order.
    package func states(of peer: PeerID) -> [PeerState] {
        events.compactMap {
            if let changed = $0.stateChange?.peer, changed.id == peer { changed.state } else { nil }
        }
    }

    /// Returns the last cause that was reported with a state of the peer.
    package func lastCause(of peer: PeerID) -> NighError? {
        events.reversed().lazy.compactMap(\.stateChange).first { $0.peer.id == peer && $0.cause != nil }?
            .cause
    }

    /// Returns why conversations with the peer ended, in order.
    func endings(with peer: PeerID) -> [NighError.Cause] {
        events.compactMap {
            if case .disconnected(let left, let error) = $0, left.id == peer { error.cause } else { nil }
        }
    }

    /// Returns the peer as last reported.
    package func peer(_ id: PeerID) -> Peer? {
        for event in events.reversed() {
            if let peer = event.changedPeer, peer.id == id { return peer }
            if case .paired(let peer) = event, peer.id == id { return peer }
        }
        return nil
    }

    /// The received invitations.
    package var invitations: [Invitation] {
        events.compactMap { if case .invited(let invitation) = $0 { invitation } else { nil } }
    }

    /// The invitations that ended unanswered, and why.
    package var endedInvitations: [(invitation: Invitation, cause: NighError.Cause)] {
        events.compactMap {
            if case .invitationEnded(let invitation, let cause) = $0 {
                (invitation, cause.cause)
            } else {
                nil
            }
        }
    }

    /// Reads the messages that wait in the inbox as if a handler had received them. Returns how many there were.
    @discardableResult
    func readInbox() -> Int {
        var count = 0
        while let message = session.messages.poll() {
            message.payload.withUnsafeBytes { record($0, message.origin) }
            count += 1
        }
        return count
    }

    /// Records that the session is closed. From then on it may report nothing.
    func noteClosed() { monitor.change { sessionIsClosed = true } }

    private func record(_ event: SessionEvent) {
        if isClosed { onViolation("session \(number) reported \(event) after its close") }
        monitor.change {
            recordedEvents.append(event)
            if let violation = checker.record(event) {
                onViolation("session \(number): \(violation.message)")
            }
            switch event {
            case .listening(_, let addresses): recordedListening = addresses
            case .transportDown(_, let error):
                if case .contractBroken = error.cause { onViolation("session \(number): \(error)") }
            default: break
            }
        }
        reaction?(event, session)
    }

    private func received(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        if isClosed { onViolation("session \(number) received a message after its close") }
        record(bytes, origin)
    }

    private func record(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        if checkMessage(bytes, origin) { return }
        let copy = Array(bytes)
        monitor.change { recordedMessages.append((origin, copy)) }
        messageReaction?(copy, origin, session)
    }
}
