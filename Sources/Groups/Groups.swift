import NighCore
import Synchronization

/// A session's membership in a group, from joining to leaving. Joining again begins another one.
package struct Membership: Hashable, Sendable {
    package let name: GroupName
    /// The session's number for the membership.
    let number: UInt32
}

/// The groups of one session: keeps its `GroupTable` in step with the session, and carries messages to groups.
///
/// A layer of its session. The table changes on the session's loop only; messages can be sent from any thread.
package final class Groups: ConversationLayer {
    /// Callbacks about the groups, called on the loop.
    package struct Observer: Sendable {
        /// A group of this session has changed.
        package var changed: @Sendable (GroupTable.Event) -> Void
        /// A conversation was ended because the peer broke the protocol.
        package var violated: @Sendable (NighError) -> Void

        package init(
            changed: @escaping @Sendable (GroupTable.Event) -> Void,
            violated: @escaping @Sendable (NighError) -> Void = { _ in }
        ) {
            self.changed = changed
            self.violated = violated
        }
    }

    /// A group as other threads see it.
    private struct View {
        let membership: Membership
        let messages: MessageSequence
        var members = MemberList<PeerID>()
    }

    /// The mutable state.
    private final class LoopState {
        weak var session: Session?
        var table = GroupTable()
        var observer: Observer?
        /// The peers that have broken the protocol in this conversation, which ends.
        var violators: Set<PeerID> = []
        /// The peers whose records wait for room.
        var waiting: Set<PeerID> = []
        var isRetryDue = false
        var isClosed = false
    }

    /// Used on the session's loop only; hence `nonisolated(unsafe)`.
    private nonisolated(unsafe) let onLoop = LoopState()
    private let views = Mutex<[GroupName: View]>([:])

    /// The pause before the session tries again to send records for which there was no room.
    private static let retryPause = Moment.Span.milliseconds(20)

    package init() {}

    /// Reports to this observer. Call it on the loop, or before the session has started.
    package func report(to observer: Observer) { onLoop.observer = observer }

    // MARK: The layer

    /// The kind of messages about groups.
    package var kinds: [MessageKind] { [GroupRecord.kind] }

    /// Begins to follow a session.
    package func attach(to session: Session) { onLoop.session = session }

    /// Takes a message of the kind of groups.
    package func receive(
        _ bytes: RawSpan, of kind: MessageKind, from origin: MessageOrigin
    ) -> KindMessagePlace? {
        bytes.withUnsafeBytes { receive($0, from: origin.peer) }
    }

    /// Takes an event of the session. Loop only.
    package func handle(_ event: SessionEvent) {
        switch event {
        case .connected(let peer):
            onLoop.violators.remove(peer.id)
            onLoop.table.connected(peer.id)
            flush(peer.id)
        case .disconnected(let peer, _):
            onLoop.violators.remove(peer.id)
            onLoop.table.disconnected(peer.id)
        default: return
        }
        finishChange()
    }

    /// Ends the sequences of all groups.
    package func sessionDidClose() {
        onLoop.isClosed = true
        onLoop.observer = nil
        let all = views.withLock { views in
            defer { views = [:] }
            return Array(views.values)
        }
        for view in all { view.messages.finish() }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer, from peer: PeerID) -> KindMessagePlace? {
        // Records of a peer that has broken the protocol are ignored.
        guard !onLoop.violators.contains(peer) else { return nil }
        do throws(WireError) {
            guard let record = try GroupRecord(reading: bytes) else { return nil }
            if let name = try onLoop.table.receive(record, from: peer) {
                guard let messages = views.withLock({ $0[name]?.messages }) else { return nil }
                return KindMessagePlace(in: messages, without: GroupRecord.messageHeaderCount)
            }
            flush(peer)
            finishChange()
        } catch {
            onLoop.violators.insert(peer)
            onLoop.observer?.violated(
                NighError(
                    .conversing, .protocolViolation(error.message),
                    peer: onLoop.session?.label(of: peer) ?? peer.short))
            onLoop.session?.disconnect(peer)
        }
        return nil
    }

    // MARK: Calls of the program

    /// Joins a group. Loop only. Returns the messages of the group.
    package func join(
        _ name: GroupName, context: [UInt8], deciding decide: @escaping GroupTable.Decision
    ) throws(NighError) -> (membership: Membership, messages: MessageSequence) {
        guard let session = onLoop.session, !onLoop.isClosed else { throw NighError(.configuring, .closed) }
        try onLoop.table.join(name, context: context, deciding: decide)
        let messages = session.makeMessages()
        let membership = Membership(name: name, number: onLoop.table.number(of: name) ?? 0)
        views.withLock { $0[name] = View(membership: membership, messages: messages) }
        flushAll()
        return (membership, messages)
    }

    /// Leaves a group. Loop only. Its messages that were not read are dropped.
    package func leave(_ membership: Membership) {
        let view = views.withLock { views in
            views[membership.name]?.membership == membership
                ? views.removeValue(forKey: membership.name) : nil
        }
        guard let view else { return }
        onLoop.table.leave(membership.name)
        view.messages.finish()
        // Messages count as unread until they are taken.
        while view.messages.poll() != nil {}
        flushAll()
    }

    /// The groups that this session is in, by name.
    package var names: [GroupName] { views.withLock { $0.keys.sorted() } }

    /// Whether the membership has not ended.
    package func isIn(_ membership: Membership) -> Bool {
        views.withLock { $0[membership.name]?.membership == membership }
    }

    /// The other members of the group, by PeerID; none if this session has left.
    package func members(of membership: Membership) -> [PeerID] { currentMembers(of: membership) ?? [] }

    /// The other members of the group, by PeerID; nil if this session has left.
    private func currentMembers(of membership: Membership) -> [PeerID]? {
        views.withLock { views -> [PeerID]? in
            guard views[membership.name]?.membership == membership else { return nil }
            return views[membership.name]?.members.sorted()
        }
    }

    /// Sends a message to the other members of a group, and waits for room at each in turn. It is no error if a member
    /// leaves meanwhile. The error has a reason if the session is closed or not in the group.
    package nonisolated(nonsending) func send(
        _ payload: ByteSlice, to group: Membership, of session: SessionReference
    ) async throws(PartialSendError) {
        guard !session.isClosing else { throw PartialSendError(NighError(.sending, .closed), peers: []) }
        guard let (message, members) = message(payload, to: group) else {
            let left = NighError(
                .sending, .invalid("group \"\(group.name)\": this session has left it"),
                advice: "join it again")
            throw PartialSendError(left, peers: [])
        }
        try await PartialSendError.gather(members, id: \.self, passingOver: \.isDisconnection) {
            member throws(NighError) in
            try await session.send(message, of: GroupRecord.kind, to: member)
        }
    }

    /// Sends a message to the other members of a group that have room for it. Returns their number.
    package func trySend(_ payload: ByteSlice, to group: Membership, of session: Session) -> Int {
        guard let (message, members) = message(payload, to: group) else { return 0 }
        return members.count { member in
            (try? session.trySend(message, of: GroupRecord.kind, to: member)) != nil
        }
    }

    /// Puts the number of the group in front of a message. It is copied once for all members.
    private func message(
        _ payload: ByteSlice, to group: Membership
    ) -> (message: ByteSlice, members: [PeerID])? {
        guard let members = currentMembers(of: group) else { return nil }
        return (ByteSlice(GroupRecord.message(number: group.number).bytes, then: payload), members)
    }

    // MARK: Sending records

    private func flushAll() {
        for peer in onLoop.table.connectedPeers { flush(peer) }
        finishChange()
    }

    private func flush(_ peer: PeerID) {
        guard let session = onLoop.session else { return }
        let isDone = onLoop.table.flush(peer) {
            session.sendIfPossible(ByteSlice($0.bytes), of: GroupRecord.kind, to: peer)
        }
        if isDone { onLoop.waiting.remove(peer) } else { onLoop.waiting.insert(peer) }
        retrySoon(session)
    }

    private func retrySoon(_ session: Session) {
        guard !onLoop.waiting.isEmpty, !onLoop.isRetryDue else { return }
        onLoop.isRetryDue = true
        session.loop.schedule(at: session.loop.now + Self.retryPause) { [weak self] in self?.retry() }
    }

    private func retry() {
        onLoop.isRetryDue = false
        guard !onLoop.isClosed else { return }
        for peer in onLoop.waiting.sorted() { flush(peer) }
        finishChange()
    }

    /// Publishes the current members to other threads, and reports the changes.
    private func finishChange() {
        let events = onLoop.table.takeEvents()
        guard !events.isEmpty else { return }
        views.withLock { views in
            for event in events {
                switch event {
                case .memberJoined(let peer, let name, _): views[name]?.members.insert(peer)
                case .memberLeft(let peer, let name): views[name]?.members.remove(peer)
                case .refused: break
                }
            }
        }
        for event in events { onLoop.observer?.changed(event) }
    }
}
