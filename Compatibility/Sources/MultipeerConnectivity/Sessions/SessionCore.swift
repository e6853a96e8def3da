import NighCore
import Synchronization

/// The implementation of `MCSession`.
///
/// `@unchecked Sendable`: `owner` is set once, `members` has a lock, and everything else that changes is confined to
/// the control queue.
final class SessionCore: @unchecked Sendable {
    /// The state of the session with one peer.
    ///
    /// `@unchecked Sendable`: confined to the control queue.
    final class Link: @unchecked Sendable {
        let engine: Engine
        /// The number of the peer's session.
        let session: UInt64
        let peerID: MCPeerID
        /// The peer's invitation that this side has accepted last.
        var invitation: UInt64?
        /// Whether the program was asked about the peer's certificate.
        var wasAsked = false
        /// Whether the program accepts the peer's certificate.
        var isAccepted = false
        var peerIsReady = false
        var isConnected = false
        /// The streams and resources that are under way.
        var transfers = TransferList()

        init(_ engine: Engine, _ session: UInt64, _ peerID: MCPeerID) {
            self.engine = engine
            self.session = session
            self.peerID = peerID
        }
    }

    /// A connected peer, for threads that send. A class, and with all that a message needs, because it is looked up for
    /// each message: counting references to the engine and to the `MCPeerID` takes longer, since there are weak ones to
    /// them.
    ///
    /// `@unchecked Sendable`: an `MCPeerID` does not change.
    final class Member: @unchecked Sendable {
        let id: PeerID
        let peerID: MCPeerID
        let low: LowLevelSession
        let sessions: WireMessage.Sessions
        let transfers: TransferList

        init(_ id: PeerID, _ link: Link, _ sessions: WireMessage.Sessions) {
            self.id = id
            peerID = link.peerID
            low = link.engine.low
            self.sessions = sessions
            transfers = link.transfers
        }
    }

    weak var owner: MCSession?
    let local: MCPeerID
    private let certificates: [[UInt8]]?
    /// The queue of all calls of the delegate.
    let queue = DispatchQueue(label: "nigh.multipeer.session.delegate")
    private let delegateLock = NSLock()
    private weak var delegateObject: (any MCSessionDelegate)?
    /// Changes with the delegate and with the members, so that a thread can see that neither has changed.
    let version = Atomic<UInt64>(0)
    /// The most bytes in one message.
    let messageLimit = NighMultipeer.settings.messageLimit
    /// How long connecting may take once both sides want it.
    private let connectingTime = NighMultipeer.settings.connectingTime / .seconds(1)
    private(set) var number: UInt64 = 0
    private var links: [PeerID: Link] = [:]
    /// The peers that other members have named, with the numbers of their sessions.
    private var introduced: [PeerID: UInt64] = [:]
    /// Connected peers in the order in which they came.
    private let members = Mutex<[Member]>([])

    /// The most addresses of another member that are tried.
    private static let addressLimit = 32
    /// How long the side with the smaller PeerID leaves joining to the other.
    private static let joinPause: TimeInterval = 2

    init(_ local: MCPeerID, certificates: [[UInt8]]?) {
        self.local = local
        self.certificates = certificates
        number = SessionDirectory.add(self)
    }

    deinit { SessionDirectory.remove(number) }

    // MARK: For other threads

    var connectedPeers: [MCPeerID] { members.withLock { $0.map(\.peerID) } }

    func member(_ id: PeerID) -> Member? {
        members.withLock { $0.first { $0.id == id } }
    }

    /// Makes a peer a member, or ends that, and notifies the delegate. The lock is held for both, so the delegate gets
    /// the messages of a peer only between these two calls.
    private func setMember(_ id: PeerID, _ member: Member?, _ peerID: MCPeerID) {
        members.withLock { members in
            members.removeAll { $0.id == id }
            if let member { members.append(member) }
            notify(peerID, member == nil ? .notConnected : .connected)
        }
        version.add(1, ordering: .releasing)
    }

    // MARK: The delegate

    /// The program sets it on one thread, and it is called on another.
    var delegate: (any MCSessionDelegate)? {
        get { delegateLock.withLock { delegateObject } }
        set {
            delegateLock.withLock { delegateObject = newValue }
            version.add(1, ordering: .releasing)
        }
    }

    /// Called on the delegate's queue after the delegate, with each change of state. Lists on a screen use them.
    let watchers = Mutex<[ObjectIdentifier: @Sendable (MCPeerID, MCSessionState) -> Void]>([:])

    /// Calls the delegate later, in the order of these calls.
    func notify(_ call: @escaping @Sendable (MCSession, any MCSessionDelegate) -> Void) {
        queue.async { self.call(call) }
    }

    /// Calls the delegate and returns when it has.
    func call(_ call: (MCSession, any MCSessionDelegate) -> Void) {
        guard let owner, let delegate = owner.delegate else { return }
        call(owner, delegate)
    }

    /// Reports a change of state to the delegate, then to the watchers.
    func notify(_ peerID: MCPeerID, _ state: MCSessionState) {
        let peerID = Handover(peerID)
        notify { $1.session($0, peer: peerID.value, didChange: state) }
        for watch in watchers.withLock({ Array($0.values) }) { queue.async { watch(peerID.value, state) } }
    }

    // MARK: Links

    func hasLink(to id: PeerID, in engine: Engine) -> Bool { links[id]?.engine === engine }

    func hasLinks(in engine: Engine) -> Bool { links.values.contains { $0.engine === engine } }

    func link(to id: PeerID, session: UInt64) -> Link? {
        links[id].flatMap { $0.session == session ? $0 : nil }
    }

    private var isFull: Bool { links.count >= NighMultipeer.settings.maximumNumberOfPeers - 1 }

    /// Whether the session has room for a peer, or has this very session of the peer already.
    func mayConnect(to id: PeerID, session: UInt64) -> Bool {
        if let link = links[id] { return link.session == session }
        return !isFull
    }

    private func sessions(_ session: UInt64) -> WireMessage.Sessions {
        WireMessage.Sessions(to: session, from: number)
    }

    /// Begins to connect with a session of a peer. Does nothing if that is so already. If there is another session of
    /// the peer's, that one stays. Returns false if there is no room for the peer.
    @discardableResult
    func connect(to id: PeerID, session: UInt64, in engine: Engine, invitation: UInt64? = nil) -> Bool {
        guard mayConnect(to: id, session: session) else {
            engine.send(.leave(sessions(session)), to: id)
            return false
        }
        engine.endAttempts(of: self, with: id)
        if let link = links[id] {
            guard let invitation, invitation != link.invitation else { return true }
            link.invitation = invitation
            // The peer may have ignored the messages that followed the earlier acceptance.
            greet(id, link)
            if link.isAccepted { engine.send(.ready(sessions(session)), to: id) }
            return true
        }
        let link = Link(engine, session, engine.peer(id).peerID)
        link.invitation = invitation
        links[id] = link
        uses(engine)
        engine.sessions[ObjectIdentifier(self)] = self
        engine.updateAdvertising()
        introduced[id] = nil
        notify(link.peerID, .connecting)
        greet(id, link)
        Control.after(connectingTime) { [weak self, weak link] in
            guard let self, let link, links[id] === link, !link.isConnected else { return }
            leave(id)
        }
        return true
    }

    private func greet(_ id: PeerID, _ link: Link) {
        link.engine.send(.hello(sessions(link.session), certificates: certificates), to: id)
    }

    func received(certificates: [[UInt8]]?, from id: PeerID, _ session: UInt64) {
        guard let link = link(to: id, session: session), !link.wasAsked else { return }
        link.wasAsked = true
        let shown = certificates.map { $0.map { Data($0) } }
        let handler: @Sendable (Bool) -> Void = { [weak self] accepts in
            Control.async { [weak self] in
                guard let self, let link = self.link(to: id, session: session), !link.isAccepted else {
                    return
                }
                guard accepts else { return self.leave(id) }
                link.isAccepted = true
                link.engine.send(.ready(self.sessions(session)), to: id)
                self.considerConnected(id, link)
            }
        }
        let peerID = Handover(link.peerID)
        queue.async {
            guard let owner = self.owner, let delegate = owner.delegate else { return handler(true) }
            delegate.session(
                owner, didReceiveCertificate: shown, fromPeer: peerID.value, certificateHandler: handler)
        }
    }

    func peerIsReady(_ id: PeerID, _ session: UInt64) {
        guard let link = link(to: id, session: session) else { return }
        link.peerIsReady = true
        considerConnected(id, link)
    }

    private func considerConnected(_ id: PeerID, _ link: Link) {
        guard link.isAccepted, link.peerIsReady, !link.isConnected else { return }
        link.isConnected = true
        setMember(id, Member(id, link, sessions(link.session)), link.peerID)
        exchangeMembers(with: id, link)
        link.engine.reconsiderStreams(of: self)
    }

    /// Ends the connection to a peer, or the attempt at one, and notifies the peer.
    private func leave(_ id: PeerID) {
        guard let link = links[id] else { return }
        link.engine.send(.leave(sessions(link.session)), to: id)
        end(id)
    }

    /// Ends the connection to a peer, or the attempt at one.
    private func end(_ id: PeerID) {
        guard let link = links.removeValue(forKey: id) else { return }
        setMember(id, nil, link.peerID)
        link.transfers.end()
        link.engine.forget(self)
        link.engine.considerIdle(id)
    }

    /// A session of a peer has left, or the peer has no use for the acceptance of one of its invitations.
    func peerLeft(_ id: PeerID, _ session: UInt64, invitation: UInt64? = nil) {
        if let link = link(to: id, session: session), invitation == nil || link.invitation == invitation {
            end(id)
        }
        if introduced[id] == session { introduced[id] = nil }
    }

    /// The conversation with a peer has ended.
    func lost(_ id: PeerID, in engine: Engine) {
        if hasLink(to: id, in: engine) { end(id) }
    }

    /// An attempt has failed.
    func failed(_ attempt: Attempt, in engine: Engine) {
        // Another named peer may take its place.
        if case .join(let session) = attempt.kind, introduced[attempt.peer] == session {
            introduced[attempt.peer] = nil
        }
        let wantsStill = engine.attempts.values.contains { $0.session === self && $0.peer == attempt.peer }
        guard attempt.isReported, attempt.sessionNumber == number, links[attempt.peer] == nil, !wantsStill
        else {
            return
        }
        notify(engine.peer(attempt.peer).peerID, .notConnected)
    }

    /// Invites a peer. One that is connected already, or about to be, gets the context nevertheless.
    func invite(_ id: PeerID, in engine: Engine, context: [UInt8]?, timeout: TimeInterval) {
        guard links[id] != nil || !isFull else {
            return notify(engine.peer(id).peerID, .notConnected)
        }
        uses(engine)
        engine.begin(
            Attempt(
                number: .random(in: 1 ... .max), session: self, sessionNumber: number, peer: id,
                kind: .invitation(context: context), deadline: Date() + timeout, isReported: true))
    }

    /// Leaves all peers. From now on the session is a new one, with nothing from before. Returns the engines that it
    /// has used.
    func disconnect() -> [Engine] {
        let engines = engines
        for id in links.keys.sorted() { leave(id) }
        for engine in engines {
            engine.endAttempts(of: self)
            engine.forget(self)
        }
        self.engines = []
        introduced = [:]
        SessionDirectory.remove(number)
        number = SessionDirectory.add(self)
        return engines
    }

    /// The engines that the session has wanted something of since it was disconnected last.
    private var engines: [Engine] = []

    func uses(_ engine: Engine) {
        if !engines.contains(where: { $0 === engine }) { engines.append(engine) }
    }

    // MARK: The other members

    // Nigh introduces the peers of a mesh by itself (NighIntroductions), which is of no use here. It connects all
    // sessions of Nigh that are connected to the same one. A peer of an engine may be in several of this program's
    // sessions, or in none, and two of a session's peers may be connected already, for another session. So members have
    // to learn which sessions belong together, which is known only here.

    /// Names the other members to a new one, and the new one to them.
    private func exchangeMembers(with id: PeerID, _ new: Link) {
        let others = links.filter { $0.key != id && $0.value.isConnected && $0.value.engine === new.engine }
        guard !others.isEmpty else { return }
        func member(_ id: PeerID, _ link: Link) -> WireMessage.Member {
            let peer = link.engine.peer(id)
            let addresses = peer.listening.isEmpty ? peer.addresses.map { "\($0)" } : peer.listening
            return WireMessage.Member(
                peer: id, session: link.session, name: link.peerID.displayName, addresses: addresses)
        }
        new.engine.send(
            .members(
                sessions(new.session), others.sorted { $0.key < $1.key }.map { member($0.key, $0.value) }),
            to: id)
        let newcomer = member(id, new)
        for (other, link) in others {
            link.engine.send(.members(sessions(link.session), [newcomer]), to: other)
        }
    }

    /// A member names other members.
    func received(_ members: [WireMessage.Member], from id: PeerID, _ session: UInt64, in engine: Engine) {
        guard link(to: id, session: session) != nil else { return }
        for member in members where member.peer != local.known.id && links[member.peer] == nil {
            guard introduced.count < NighMultipeer.settings.maximumNumberOfPeers else { return }
            introduced[member.peer] = member.session
            let peer = engine.peer(member.peer)
            if peer.conversation == nil, !peer.isVisible {
                peer.name = member.name
                peer.listening = Array(member.addresses.prefix(Self.addressLimit))
            }
            // One side is enough, and if its way is barred, the other tries, too.
            if local.known.id > member.peer {
                join(member.peer, in: engine)
            } else {
                Control.after(Self.joinPause) { [weak self, weak engine] in
                    if let engine { self?.join(member.peer, in: engine) }
                }
            }
        }
        engine.reconsiderJoins(into: self)
    }

    private func join(_ id: PeerID, in engine: Engine) {
        guard let session = introduced[id], links[id] == nil, !isFull else { return }
        join(id, session: session, in: engine, timeout: Engine.joinTime, isReported: false)
    }

    func join(_ id: PeerID, session: UInt64, in engine: Engine, timeout: TimeInterval, isReported: Bool) {
        uses(engine)
        engine.begin(
            Attempt(
                number: .random(in: 1 ... .max), session: self, sessionNumber: number, peer: id,
                kind: .join(session: session), deadline: Date() + timeout, isReported: isReported))
    }

    /// Whether a session of a peer may join: a member has named it, or this program joins that session, too.
    func expects(_ id: PeerID, session: UInt64, in engine: Engine) -> Bool {
        if let link = links[id] { return link.session == session }
        if introduced[id] == session { return true }
        return engine.attempts.values.contains { attempt in
            guard case .join(let wanted) = attempt.kind else { return false }
            return attempt.session === self && attempt.peer == id && wanted == session
        }
    }

    /// Ends an attempt to connect that the program has arranged, also if it is about to succeed.
    func cancelConnecting(to id: PeerID) {
        if let link = links[id] {
            if !link.isConnected { leave(id) }
            return
        }
        for engine in engines {
            for attempt in engine.attempts.values where attempt.session === self && attempt.peer == id {
                engine.fail(attempt.number, because: .cancelled)
            }
        }
    }
}
