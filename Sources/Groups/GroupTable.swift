import NighCore

/// The groups that a session and its peers have joined, and the members of each.
///
/// A peer is a member of a group if both sessions have joined it and neither refuses the other. So two peers agree once
/// each has the other's records. A value without I/O: `flush` sends records.
package struct GroupTable {
    /// Decides about a peer in a group, from the context that its program has added. Returns a reason to refuse it, or
    /// nil.
    package typealias Decision = (_ peer: PeerID, _ context: [UInt8]) -> String?

    /// A change in the groups, for the program.
    package enum Event: Equatable {
        /// The peer is a member from now on. `context` comes from its program.
        case memberJoined(PeerID, GroupName, context: [UInt8])
        case memberLeft(PeerID, GroupName)
        /// The peer does not want this session in the group.
        case refused(by: PeerID, GroupName, reason: String)
    }

    /// A group that this session has joined.
    private struct OwnGroup {
        let number: UInt32
        let context: [UInt8]
        let decide: Decision
        var members: Set<PeerID> = []
    }

    /// A group that a peer has joined.
    private struct PeerGroup {
        enum State {
            /// This session is not in the group.
            case undecided
            case admitted
            case refused(String)
        }

        let name: GroupName
        let context: [UInt8]
        var state = State.undecided
    }

    private struct Entry {
        /// The groups that the peer has joined, by its numbers.
        var theirs: [UInt32: PeerGroup] = [:]
        var numbers: [GroupName: UInt32] = [:]
        /// The highest number that the peer has used.
        var lastNumber: UInt32 = 0
        /// This session's numbers that were announced to the peer.
        var announced: Set<UInt32> = []
        /// This session's numbers that the peer has refused.
        var refusedUs: Set<UInt32> = []
        /// The peer's numbers whose refusal has not been sent.
        var dueRefusals: Set<UInt32> = []
        var takesRecords = true
    }

    /// The most groups that one session is in.
    package static let mostGroups = 64

    private var own: [GroupName: OwnGroup] = [:]
    private var names: [UInt32: GroupName] = [:]
    private var lastNumber: UInt32 = 0
    private var peers: [PeerID: Entry] = [:]
    private var events: [Event] = []

    package init() {}

    // MARK: State

    /// The groups that this session has joined, by name.
    package var groups: [GroupName] { own.keys.sorted() }

    /// The other members of a group that this session has joined, by PeerID.
    package func members(of name: GroupName) -> [PeerID] { own[name]?.members.sorted() ?? [] }

    /// The number under which this session is in a group; nil if it is not in it.
    package func number(of name: GroupName) -> UInt32? { own[name]?.number }

    /// Returns the events since the last call, in order.
    package mutating func takeEvents() -> [Event] {
        defer { events.removeAll() }
        return events
    }

    // MARK: Joining and leaving

    /// Joins a group.
    ///
    /// - Parameters:
    ///   - context: The bytes that the others' decisions get.
    ///   - decision: Decides about each peer in the group.
    package mutating func join(
        _ name: GroupName, context: [UInt8], deciding decision: @escaping Decision
    ) throws(NighError) {
        guard own[name] == nil else {
            throw NighError(
                .configuring, .invalid("group \"\(name)\": this session is in it already"),
                advice: "leave it before joining it anew")
        }
        guard context.count <= GroupRecord.longestContext else {
            throw NighError(
                .configuring, .limit("bytes of a membership's context", GroupRecord.longestContext),
                advice: "send more as a message to the group")
        }
        guard own.count < Self.mostGroups, lastNumber < .max else {
            throw NighError(
                .configuring, .limit("groups", Self.mostGroups),
                advice: "leave a group before joining another")
        }
        lastNumber += 1
        own[name] = OwnGroup(number: lastNumber, context: context, decide: decision)
        names[lastNumber] = name
        for id in peers.keys.sorted() { decide(on: id, in: name) }
    }

    /// Leaves a group. Reports no `memberLeft` for its members.
    package mutating func leave(_ name: GroupName) {
        guard let left = own.removeValue(forKey: name) else { return }
        names[left.number] = nil
        for id in peers.keys {
            guard let number = peers[id]?.numbers[name] else { continue }
            // After joining again, this session decides about the peer again.
            peers[id]?.theirs[number]?.state = .undecided
            peers[id]?.dueRefusals.remove(number)
        }
    }

    // MARK: Peers

    /// The connected peers, by PeerID.
    package var connectedPeers: [PeerID] { peers.keys.sorted() }

    /// A conversation with a peer has begun.
    package mutating func connected(_ id: PeerID) {
        disconnected(id)
        peers[id] = Entry()
    }

    /// The conversation with a peer is over.
    package mutating func disconnected(_ id: PeerID) {
        guard let entry = peers.removeValue(forKey: id) else { return }
        for name in entry.numbers.keys.sorted() { update(id, in: name) }
    }

    /// Sends the peer's records. Returns false if some are left for lack of room.
    package mutating func flush(_ id: PeerID, send: (GroupRecord) -> KindMessageSending) -> Bool {
        // Nothing is left for a peer that takes no records.
        sendRecords(id, send) || peers[id]?.takesRecords != true
    }

    /// Sends the peer's records, up to the first one that is not sent. Returns whether all were sent.
    private mutating func sendRecords(_ id: PeerID, _ send: (GroupRecord) -> KindMessageSending) -> Bool {
        guard let entry = peers[id], entry.takesRecords else { return true }
        for number in entry.announced.sorted() where names[number] == nil {
            guard sendRecord(id, .leave(number: number), send) else { return false }
            peers[id]?.announced.remove(number)
            peers[id]?.refusedUs.remove(number)
        }
        for (name, group) in own.sorted(by: { $0.value.number < $1.value.number })
        where !entry.announced.contains(group.number) {
            let record = GroupRecord.join(number: group.number, name: name, context: group.context)
            guard sendRecord(id, record, send) else { return false }
            peers[id]?.announced.insert(group.number)
            update(id, in: name)
        }
        for number in entry.dueRefusals.sorted() {
            guard case .refused(let reason)? = entry.theirs[number]?.state else { continue }
            guard sendRecord(id, .refuse(number: number, reason: reason), send) else { return false }
            peers[id]?.dueRefusals.remove(number)
        }
        return true
    }

    /// Sends one record. Returns whether it was sent.
    private mutating func sendRecord(
        _ id: PeerID, _ record: GroupRecord, _ send: (GroupRecord) -> KindMessageSending
    ) -> Bool {
        switch send(record) {
        case .sent: return true
        case .full: return false
        case .unsupported:
            peers[id]?.takesRecords = false
            return false
        }
    }

    // MARK: Receiving

    /// Takes a record from a peer. Returns the group whose message it is, if it is one from a member.
    package mutating func receive(_ record: GroupRecord, from id: PeerID) throws(WireError) -> GroupName? {
        guard let entry = peers[id] else { return nil }
        switch record {
        case .join(let number, let name, let context):
            guard number > entry.lastNumber, entry.numbers[name] == nil else {
                throw .malformed("a group that was joined twice")
            }
            guard entry.theirs.count < Self.mostGroups else {
                throw .malformed("more groups than are allowed")
            }
            peers[id]?.lastNumber = number
            peers[id]?.numbers[name] = number
            peers[id]?.theirs[number] = PeerGroup(name: name, context: context)
            decide(on: id, in: name)
        case .leave(let number):
            guard let left = peers[id]?.theirs.removeValue(forKey: number) else {
                throw .malformed("the end of a membership that did not begin")
            }
            peers[id]?.numbers[left.name] = nil
            peers[id]?.dueRefusals.remove(number)
            // A peer that joins again also decides about this session again.
            if let ours = own[left.name]?.number { peers[id]?.refusedUs.remove(ours) }
            update(id, in: left.name)
        case .refuse(let number, let reason):
            guard number <= lastNumber else {
                throw .malformed("the refusal of a membership that did not begin")
            }
            // This side may have left meanwhile.
            guard let name = names[number], entry.announced.contains(number) else { return nil }
            guard peers[id]?.refusedUs.insert(number).inserted == true else { return nil }
            update(id, in: name)
            events.append(.refused(by: id, name, reason: reason))
        case .message(let number):
            guard number <= entry.lastNumber else {
                throw .malformed("a message to a group that was not joined")
            }
            guard let name = entry.theirs[number]?.name, own[name]?.members.contains(id) == true else {
                return nil
            }
            return name
        }
        return nil
    }

    // MARK: Members

    /// Decides about a peer that is in a group, if this session is in it and has not decided.
    private mutating func decide(on id: PeerID, in name: GroupName) {
        guard let group = own[name], let number = peers[id]?.numbers[name],
            let theirs = peers[id]?.theirs[number], case .undecided = theirs.state
        else { return }
        if let reason = group.decide(id, theirs.context) {
            peers[id]?.theirs[number]?.state = .refused(reason)
            peers[id]?.dueRefusals.insert(number)
        } else {
            peers[id]?.theirs[number]?.state = .admitted
        }
        update(id, in: name)
    }

    /// Notes whether a peer is a member of a group, and reports it if that has changed.
    private mutating func update(_ id: PeerID, in name: GroupName) {
        guard let group = own[name] else { return }
        let theirs = peers[id].flatMap { entry in entry.numbers[name].flatMap { entry.theirs[$0] } }
        var isMember = false
        if case .admitted? = theirs?.state, let entry = peers[id] {
            isMember = entry.announced.contains(group.number) && !entry.refusedUs.contains(group.number)
        }
        guard isMember != group.members.contains(id) else { return }
        if isMember {
            own[name]?.members.insert(id)
            events.append(.memberJoined(id, name, context: theirs?.context ?? []))
        } else {
            own[name]?.members.remove(id)
            events.append(.memberLeft(id, name))
        }
    }
}
