import NighGroups
import NighLoop

/// Whom a session accepts as members of a group that it joins.
public enum GroupAdmission: Sendable {
    /// Every connected peer that joins.
    case everyone
    /// Paired peers. Others are refused.
    case paired
    /// The peers that `accepts` returns true for. It gets the peer and the bytes that its program has joined with. It
    /// is called on the session's own thread, which it must not block.
    case chosen(accepts: @Sendable (_ peer: Peer, _ context: [UInt8]) -> Bool)
}

/// A group that a session has joined: the connected peers that have joined a group of the same name.
///
/// Two sessions are members for each other if they are connected, both have joined, and neither refuses the other. A
/// group needs no leader, and ends for a session when that leaves it or is closed.
public struct Group: Sendable {
    /// The name, which is the same for all members.
    public let name: String
    let membership: Membership
    let session: SessionCore
    /// The messages to the group from its other members. Each message goes to one reader. Messages that are not read
    /// slow their senders down.
    public let messages: MessageSequence

    /// The other members now, by PeerID.
    public var members: [Peer] { session.members(of: membership) }

    /// The other members now, and again after each change; for user interfaces. A slow reader gets the newest list
    /// only. Ends when the session leaves the group.
    public var memberLists: some AsyncSequence<[Peer], Never> & Sendable {
        session.memberLists(of: membership)
    }

    /// The messages to the group as values of one type; see ``Session/messages(of:)``.
    public func messages<Content: Decodable & Sendable>(of type: Content.Type) -> TypedMessages<Content> {
        TypedMessages(session: session, messages: messages)
    }

    /// Sends a value as JSON to all other members, to each reliably and in order. Waits while the send buffer of one is
    /// full. It is no error if a member disconnects in the meantime, or if there is none. If the task is cancelled, the
    /// error names the members that were not reached by then; the others have the message.
    public nonisolated(nonsending) func send(_ value: some Encodable) async throws {
        try await send(bytes: MessageCoding.encode(value))
    }

    /// Sends bytes as they are to all other members; see ``send(_:)``.
    public nonisolated(nonsending) func send(bytes: some Collection<UInt8>) async throws {
        try await session.groups.send(ByteSlice(bytes), to: membership, of: session.low)
    }

    /// Leaves the group. Its sequences end, and messages that were not read are dropped. Cancelling the task changes
    /// nothing.
    public nonisolated(nonsending) func leave() async { await session.leave(membership) }
}

extension Session {
    /// Joins a group: the connected peers that have joined a group of the same name exchange messages within it. The
    /// session may be in up to 64 groups. The call waits for nobody, so cancelling its task changes nothing.
    ///
    /// - Parameters:
    ///   - name: 1 to 63 bytes without control characters.
    ///   - context: Up to 1,024 bytes that the other members' programs get, for instance to decide whom they accept.
    ///   - admitting: Whom this session accepts as members.
    public nonisolated(nonsending) func join(
        _ name: String, context: [UInt8] = [], admitting: GroupAdmission = .everyone
    ) async throws(NighError) -> Group {
        guard let id = GroupName(name) else {
            throw NighError(
                .configuring, .invalid("name of a group: \"\(name)\""),
                advice: "use 1 to 63 bytes and no control characters")
        }
        let (membership, messages) = try await core.join(id, context: context, admitting)
        return Group(name: name, membership: membership, session: core, messages: messages)
    }

    /// The names of the groups that this session is in, in order.
    public var groupNames: [String] { core.groups.names.map(\.description) }
}

extension SessionCore {
    nonisolated(nonsending) func join(
        _ name: GroupName, context: [UInt8], _ admission: GroupAdmission
    ) async throws(NighError) -> (Membership, MessageSequence) {
        try await onLoop { core throws(NighError) in
            try core.groups.join(name, context: context) { [weak core] id, context in
                core?.reason(against: id, context, admission)
            }
        }.get()
    }

    nonisolated(nonsending) func leave(_ membership: Membership) async {
        _ = await onLoop { core throws(NighError) in core.groups.leave(membership) }
        finishMembers(of: membership)
    }

    /// Returns why a peer cannot be a member; nil if it can.
    private func reason(against id: PeerID, _ context: [UInt8], _ admission: GroupAdmission) -> String? {
        let peer = peer(id)
        return switch admission {
        case .everyone: nil
        case .paired: peer.trust == .paired ? nil : "the group is for paired devices only"
        case .chosen(let accepts):
            accepts(peer, context) ? nil : "the program there does not accept this peer"
        }
    }

    private nonisolated(nonsending) func onLoop<Value: Sendable>(
        _ work: @escaping @Sendable (SessionCore) throws(NighError) -> Value
    ) async -> Result<Value, NighError> {
        await PendingAnswer.wait(otherwise: .failure(NighError(.configuring, .closed))) { answer in
            loop.execute { [self] in answer.give(Result { () throws(NighError) in try work(self) }) }
        }
    }

    /// Reports what has happened in a group.
    func handle(_ event: GroupTable.Event) {
        switch event {
        case .memberJoined(let id, let name, let context):
            report(.memberJoined(peer(id), group: name.description, context: context))
            showMembers(of: name)
        case .memberLeft(let id, let name):
            report(.memberLeft(peer(id), group: name.description))
            showMembers(of: name)
        case .refused(let id, let name, let reason):
            report(
                .groupRefused(
                    by: peer(id), group: name.description,
                    NighError(.conversing, .declined(reason), peer: peer(id).label)))
        }
    }
}
