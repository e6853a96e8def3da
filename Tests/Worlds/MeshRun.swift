import NighCore
import NighTestKit
import NighIntroductions
import NighMemory
import NighRelays

/// One run of a session in a world of meshes, from its start to its end: what it has sent, received and been told.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class MeshRun: @unchecked Sendable {
    /// The content of a message: the sender, the receiver, the conversation, and the message's number there.
    struct Content: Equatable {
        static let mark: [UInt8] = Array("mesh message ".utf8)
        static let byteCount = mark.count + 2 * PeerID.byteCount + 16

        var sender: PeerID
        var receiver: PeerID
        var conversation: UInt64
        var number: UInt64

        var bytes: [UInt8] {
            func bytes(_ number: UInt64) -> [UInt8] {
                (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * UInt64($0))) }
            }
            return Self.mark + sender.bytes + receiver.bytes + bytes(conversation) + bytes(number)
        }

        init(_ sender: PeerID, _ receiver: PeerID, _ conversation: UInt64, _ number: UInt64) {
            self.sender = sender
            self.receiver = receiver
            self.conversation = conversation
            self.number = number
        }

        init?(_ bytes: some Collection<UInt8>) {
            let bytes = Array(bytes)
            let (first, second) = (Self.mark.count, Self.mark.count + PeerID.byteCount)
            let end = second + PeerID.byteCount
            guard bytes.count == Self.byteCount, bytes.starts(with: Self.mark),
                let sender = PeerID(bytes: bytes[first..<second]),
                let receiver = PeerID(bytes: bytes[second..<end])
            else { return nil }
            func number(_ start: Int) -> UInt64 {
                bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
            }
            self.init(sender, receiver, number(end), number(end + 8))
        }
    }

    unowned let world: MeshWorld
    let member: MeshWorld.Member
    let number: Int
    let session: Session
    let introductions: Introductions
    let faults: [FaultControl]
    private(set) var hasClosed = false
    private(set) var hasCrashed = false
    private(set) var isOver = false
    /// The state of each peer as it was last told.
    private var states = PeerStateChecker()
    /// The number of the last message of each conversation in each direction.
    private(set) var sent: [UInt64: UInt64] = [:]
    private(set) var received: [UInt64: UInt64] = [:]
    /// The messages about others that have come, and their bytes.
    private(set) var recordMessages = 0
    private(set) var recordBytes = 0

    var id: PeerID { session.id }
    var label: String { "\(member.index).\(number)" }

    init(_ member: MeshWorld.Member, in world: MeshWorld, number: Int, seed: UInt64) {
        self.world = world
        self.member = member
        self.number = number
        var configuration = SessionConfiguration(
            service: MeshWorld.service, name: DisplayName(fitting: "member \(member.index)"),
            role: member.browses ? .peer : .server)
        configuration.seed = seed
        configuration.security = world.security
        configuration.limits.peers = MeshWorld.mostMembers
        configuration.limits.unauthenticatedPipes = 256
        introductions = Introductions(
            member.identity, of: configuration, isMesh: true,
            relaying: world.hasRelays ? .everyone : .nobody, seed: seed &+ 1)
        configuration.layers = [
            TappedLayer(introductions) { [unowned world, index = member.index] bytes in
                world.countRecord(of: index, bytes.byteCount)
                return !world.fault.losesRecords
            }
        ]
        let host = world.network.addHost(
            at: MeshWorld.address(member.index, on: 0).value, on: member.wires
        ) { world.plan(seed: seed &+ UInt64($0)) }
        faults = host.faults
        if world.hasSecrets {
            configuration.layers.append(
                MeshEavesdropper(member.identity.peerID) { [unowned world] content in
                    world.report(.authentic, "member \(member.index) can read \(content)")
                })
        }
        session = Session(
            configuration, identity: member.identity, transports: host.transports, loop: world.loop)
    }

    func start() {
        introductions.report(
            to: Introductions.Observer(
                violated: { [unowned self] in world.report(.consistency, "\(label): \($0)") }))
        session.start(
            onEvent: { [unowned self] in handle($0) },
            onMessage: { [unowned self] bytes, origin in
                bytes.withUnsafeBytes { receive(Array($0), from: origin.peer) }
            })
    }

    /// Ends it in good order.
    func close() {
        guard !isOver else { return }
        isOver = true
        session.close { [self] in hasClosed = true }
    }

    /// Ends it without a word.
    func crash() {
        (isOver, hasCrashed) = (true, true)
        session.crash()
    }

    func countRecord(_ count: Int) {
        recordMessages += 1
        recordBytes += count
    }

    // MARK: What the session reports

    private func handle(_ event: SessionEvent) {
        if hasClosed { world.report(.silence, "\(label) is told something after its end") }
        if let violation = states.record(event) {
            world.report(violation.rule, "\(label): \(violation.message)")
        }
        switch event {
        case .connected: world.counts.conversations += 1
        case .reconnected: world.counts.reconnects += 1
        case .invited(let invitation):
            world.counts.invitations += 1
            invitation.accept()
        case .transportDown(let scheme, let error):
            world.report(.consistency, "\(label): \(scheme) is down: \(error)")
        default: break
        }
    }

    private func receive(_ bytes: [UInt8], from peer: PeerID) {
        guard let content = Content(bytes) else {
            return world.report(.order, "\(label) gets a changed message from \(peer.short)")
        }
        if !states.state(of: peer).hasConversation {
            world.report(.moves, "\(label) gets a message from \(peer.short), which is not connected")
        }
        if content.sender != peer || content.receiver != id {
            world.report(.authentic, "\(label) gets the message of another: \(content)")
        }
        let expected = (received[content.conversation] ?? 0) + 1
        if content.number != expected {
            world.report(
                content.number < expected ? .exactlyOnce : .order,
                "\(label) gets message \(content.number) of \(peer.short) instead of \(expected)")
        }
        received[content.conversation] = content.number
        world.counts.messagesReceived += 1
    }

    // MARK: What its user does

    /// Sends messages to a peer for as long as there is room.
    func send(_ count: Int, to peer: PeerID) {
        for _ in 0..<count {
            guard let conversation = session.inspection(of: peer)?.conversation else { return }
            let number = (sent[conversation] ?? 0) + 1
            let content = Content(id, peer, conversation, number)
            do throws(NighError) {
                try session.trySend(ByteSlice(content.bytes), to: peer)
                sent[conversation] = number
                world.counts.messagesSent += 1
            } catch {
                return
            }
        }
    }

    /// Invites whoever is at the address of a member.
    func call(_ other: MeshWorld.Member) {
        guard let wire = member.wires.first(where: other.wires.contains) else { return }
        session.invite(at: MeshWorld.address(other.index, on: wire)) { _ in }
    }

    /// The peers with which there is a conversation.
    var connected: [PeerID] {
        session.inspection.peers.filter { $0.state.hasConversation }.map(\.id)
    }
}

/// Looks for messages that are for others in what arrives on a session's links.
private final class MeshEavesdropper: SessionLayer, LinkObserver {
    private let own: PeerID
    private let found: @Sendable (MeshRun.Content) -> Void

    init(_ own: PeerID, found: @escaping @Sendable (MeshRun.Content) -> Void) {
        self.own = own
        self.found = found
    }

    func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
        guard case .received(let bytes) = event, bytes.count >= MeshRun.Content.byteCount else { return }
        let all = bytes.bytes
        for start in 0...(all.count - MeshRun.Content.byteCount) where all[start] == MeshRun.Content.mark[0] {
            let end = start + MeshRun.Content.byteCount
            if let content = MeshRun.Content(all[start..<end]), content.receiver != own { found(content) }
        }
    }
}
