import NighCore
import NighGroups
import Synchronization

/// The peers that a session accepts as members of a group that it joins.
public enum GroupAdmission: Sendable {
    /// Every connected peer that joins.
    case everyone
    /// Paired peers. Others are refused.
    case paired
    /// The peers that `accepts` returns true for. It gets the peer and the bytes that its program has joined with. It
    /// is called on the session's own thread, which it must not block.
    case chosen(accepts: @Sendable (_ peer: Peer, _ context: [UInt8]) -> Bool)
}

/// Something that happened in a group.
public enum GroupEvent: Sendable {
    /// The peer is a member from now on. `context` comes from its program's call of `join`.
    case joined(Peer, context: [UInt8])
    /// The peer is no longer a member.
    case left(Peer)
    /// The peer does not accept this session as a member, for this reason.
    case refused(by: Peer, NighError)
}

/// A group that a session has joined: the connected peers that have joined a group of the same name.
///
/// Two sessions are members for each other if they are connected, both have joined, and neither refuses the other. A
/// group needs no leader, and ends for a session when that leaves it or is closed.
public struct Group: Sendable {
    /// The name, which is the same for all members.
    public let name: String
    let membership: Membership
    let readers: GroupReaders
    let session: SessionReference
    /// The messages to the group from its other members. Each message goes to one reader. Messages that are not read
    /// slow their senders down.
    public let messages: MessageSequence

    /// The other members now, by PeerID.
    public var members: [Peer] { readers.members(of: membership) }

    /// The other members now, and again after each change; for user interfaces. A slow reader gets the newest list
    /// only. Ends when the session leaves the group.
    public var memberLists: some AsyncSequence<[Peer], Never> & Sendable {
        readers.memberLists(of: membership)
    }

    /// The events of the group from now on, beginning with the members that it has. Each call gives a sequence of its
    /// own, which drops the oldest of more than 1,024 unread events, and ends when the session leaves the group.
    public var events: some AsyncSequence<GroupEvent, Never> & Sendable { readers.events(of: membership) }

    /// The messages to the group as values of one type; see ``Session/messages(of:)``.
    public func messages<Content: Decodable & Sendable>(of type: Content.Type) -> TypedMessages<Content> {
        TypedMessages(session: session, messages: .session(messages))
    }

    /// Sends a value to all other members, to each reliably and in order. Waits while the send buffer of one is
    /// full. It is no error if a member disconnects in the meantime, or if there is none. If the task is cancelled, the
    /// error names the members that were not reached by then; the others have the message.
    public nonisolated(nonsending) func send(_ value: some Encodable) async throws(PartialSendError) {
        try await send(bytes: session.encode(value, to: members))
    }

    /// Sends bytes as they are to all other members; see ``send(_:)``.
    public nonisolated(nonsending) func send(
        bytes: some Collection<UInt8>
    ) async throws(PartialSendError) {
        try await readers.groups.send(ByteSlice(bytes), to: membership, of: session)
    }

    /// Leaves the group. Its sequences end, and messages that were not read are dropped. Cancelling the task changes
    /// nothing.
    public nonisolated(nonsending) func leave() async {
        _ = await session.onLoop(.configuring) { [readers, membership] in readers.leave(membership) }
    }
}

extension Group: CustomStringConvertible {
    /// The name.
    public var description: String { "group \"\(name)\"" }
}

extension Session {
    /// Joins a group: the connected peers that have joined a group of the same name exchange messages within it. The
    /// session may be in up to 64 groups. The call waits for nobody, so cancelling its task changes nothing.
    ///
    /// - Parameters:
    ///   - name: 1 to 63 bytes without control characters.
    ///   - context: Up to 1,024 bytes that the other members' programs get, for instance to decide whether they accept
    ///     this session.
    ///   - admitting: The members that this session accepts.
    public nonisolated(nonsending) func join(
        _ name: String, context: [UInt8] = [], admitting: GroupAdmission = .everyone
    ) async throws(NighError) -> Group {
        guard let id = GroupName(name) else {
            throw NighError(
                .configuring, .invalid("name of a group: \"\(name)\""),
                advice: "use 1 to 63 bytes and no control characters")
        }
        let readers = try required(GroupReaders.self, "groups")
        let session = reference
        let (membership, messages) = try await session.onLoop(.configuring) { () throws(NighError) in
            try readers.groups.join(id, context: context) { id, context in
                admitting.reason(against: session.peer(id), context)
            }
        }.get()
        return Group(
            name: name, membership: membership, readers: readers, session: session, messages: messages)
    }

    /// The names of the groups that this session is in, in order.
    public var groupNames: [String] { layer(GroupReaders.self)?.groups.names.map(\.description) ?? [] }
}

extension GroupAdmission {
    /// Returns why a peer cannot be a member; nil if it can.
    fileprivate func reason(against peer: Peer, _ context: [UInt8]) -> String? {
        switch self {
        case .everyone: nil
        case .paired: peer.trust == .paired ? nil : "the group is for paired devices only"
        case .chosen(let accepts):
            accepts(peer, context) ? nil : "the program there does not accept this peer"
        }
    }
}

/// Tells the program of the members of its groups.
final class GroupReaders: SessionLayer {
    private struct Readers {
        /// The bytes that the members have joined with, by peer.
        var contexts: [PeerID: [UInt8]] = [:]
        var lists = ListReaders<Peer>()
        var events: [AsyncStream<GroupEvent>.Continuation] = []

        /// Ends all sequences. The caller must hold no lock.
        func finish() {
            lists.finish()
            for reader in events { reader.finish() }
        }
    }

    let groups: Groups
    private let session = Mutex<SessionReference?>(nil)
    /// The readers of each group that has had a reader or a member.
    private let readers = Mutex<[GroupName: Readers]>([:])
    private static let eventLimit = 1_024

    init(_ groups: Groups) { self.groups = groups }

    func attach(to session: Session) {
        let session = session.reference
        self.session.withLock { $0 = session }
        groups.report(
            to: Groups.Observer(
                changed: { [weak self] in self?.handle($0, session) },
                violated: { session.report(.problem($0)) }))
    }

    func sessionDidClose() {
        let all = readers.withLock { readers in
            defer { readers = [:] }
            return Array(readers.values)
        }
        for readers in all { readers.finish() }
    }

    /// Leaves a group, unless the session has left it already. Loop only.
    func leave(_ membership: Membership) {
        guard groups.isIn(membership) else { return }
        groups.leave(membership)
        readers.withLock { $0.removeValue(forKey: membership.name) }?.finish()
    }

    private func handle(_ event: GroupTable.Event, _ session: SessionReference) {
        switch event {
        case .memberJoined(let id, let name, let context):
            report(.joined(session.peer(id), context: context), in: name) { $0.contexts[id] = context }
        case .memberLeft(let id, let name):
            report(.left(session.peer(id)), in: name) { $0.contexts[id] = nil }
        case .refused(let id, let name, let reason):
            let peer = session.peer(id)
            let error = NighError(.conversing, .declined(reason), peer: peer.label)
            report(.refused(by: peer, error), in: name) { _ in }
        }
    }

    private func report(_ event: GroupEvent, in name: GroupName, _ change: (inout Readers) -> Void) {
        readers.withLock { all in
            change(&all[name, default: Readers()])
            guard let readers = all[name] else { return }
            for reader in readers.events { reader.yield(event) }
            if !readers.lists.isEmpty { readers.lists.yield(peers(readers.contexts.keys)) }
        }
    }

    private func peers(_ ids: some Collection<PeerID>) -> [Peer] {
        guard let session = session.withLock(\.self) else { return [] }
        return ids.sorted().map(session.peer)
    }

    // MARK: Any thread

    func members(of group: Membership) -> [Peer] { peers(groups.members(of: group)) }

    func memberLists(of group: Membership) -> AsyncStream<[Peer]> {
        readers.withLock { all in
            guard groups.isIn(group) else { return ListReaders.only([]) }
            let members = peers(all[group.name]?.contexts.keys.sorted() ?? [])
            return all[group.name, default: Readers()].lists.add(members) { [weak self] number in
                self?.readers.withLock { $0[group.name]?.lists.remove(number) }
            }
        }
    }

    func events(of group: Membership) -> AsyncStream<GroupEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: GroupEvent.self, bufferingPolicy: .bufferingNewest(Self.eventLimit))
        let isIn = readers.withLock { all in
            guard groups.isIn(group) else { return false }
            let contexts = all[group.name]?.contexts ?? [:]
            for peer in peers(contexts.keys) {
                continuation.yield(.joined(peer, context: contexts[peer.id] ?? []))
            }
            all[group.name, default: Readers()].events.append(continuation)
            return true
        }
        if !isIn { continuation.finish() }
        return stream
    }
}
