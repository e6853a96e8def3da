import NighCore

/// Which guests a session lets in: the tokens of its invitations, and the guests that have used one.
///
/// A value without I/O: the time and the random bytes are arguments. It keeps hashes only, of tokens and of keys.
package struct GuestBook {
    /// The most guests at a time, and the most invitations that nobody has used yet.
    package static let mostGuests = 16
    static let mostInvitations = 32
    /// How long a guest may begin with an invitation.
    static let invitationTime = Moment.Span.seconds(5 * 60)
    /// How long a guest may come back after it was there last.
    static let guestTime = Moment.Span.seconds(12 * 3_600)
    /// After this many wrong tokens from one address, no token counts from there for a while.
    static let mostFailures = 5
    static let failurePause = Moment.Span.seconds(60)
    /// The most addresses for which wrong tokens are counted, and the most revoked guests that are remembered.
    static let mostSources = 256

    private struct Invitation {
        let expires: Moment
        /// The guest that has used it.
        var guest: PeerID?
    }

    private struct Visitor {
        let since: Moment
        var lastSeen: Moment
        var source: String
        /// How many WebSockets it has.
        var visits = 0
        var byteCount = 0
    }

    private struct Failures {
        var count = 0
        var last: Moment
    }

    private var invitations: [[UInt8]: Invitation] = [:]
    private var visitors: [PeerID: Visitor] = [:]
    private var failures: [String: Failures] = [:]
    private var revoked: [PeerID] = []

    /// Creates a book without guests.
    package init() {}

    // MARK: Invitations

    /// Notes the token of a new invitation. If too many are unused, the oldest ends.
    package mutating func invite(_ token: [UInt8], at now: Moment) {
        invitations = invitations.filter { $0.value.expires > now }
        if invitations.count >= Self.mostInvitations,
            let oldest = invitations.min(by: { $0.value.expires < $1.value.expires })
        {
            invitations[oldest.key] = nil
        }
        invitations[Self.hash(token)] = Invitation(expires: now + Self.invitationTime)
    }

    // MARK: Guests

    /// Decides whether a guest comes in. If so, it counts as here until `left`.
    ///
    /// - Parameter source: the address from which it comes.
    package mutating func enter(_ entry: GuestEntry, from source: String, at now: Moment) -> Result<
        PeerID, Refused
    > {
        let id = entry.peer
        if let visitor = visitors[id], visitor.visits > 0 || now - visitor.lastSeen < Self.guestTime {
            return arrived(id, from: source, at: now)
        }
        visitors[id] = nil
        if entry.token == nil {
            return .failure(Refused(revoked.contains(id) ? .revoked : .forgotten))
        }
        if let failed = failures[source], failed.count >= Self.mostFailures {
            let left = failed.last + Self.failurePause - now
            guard left <= .seconds(0) else {
                return .failure(Refused(.tooMany(seconds: UInt32(left.nanoseconds / 1_000_000_000 + 1))))
            }
            failures[source] = nil
        }
        let hash = Self.hash(entry.token ?? [])
        guard let invitation = invitations[hash], invitation.guest == nil || invitation.guest == id else {
            noteFailure(of: source, at: now)
            if revoked.contains(id) { return .failure(Refused(.revoked)) }
            return .failure(Refused(invitations[hash] == nil ? .unknown : .used))
        }
        guard invitation.expires > now else { return .failure(Refused(.old)) }
        guard makeRoom(at: now) else { return .failure(Refused(.full)) }
        invitations[hash]?.guest = id
        revoked.removeAll { $0 == id }
        visitors[id] = Visitor(since: now, lastSeen: now, source: source)
        return arrived(id, from: source, at: now)
    }

    /// The error of `enter`.
    package struct Refused: Error, Equatable {
        package let reason: GuestRefusal
        init(_ reason: GuestRefusal) { self.reason = reason }
    }

    private mutating func arrived(_ id: PeerID, from source: String, at now: Moment) -> Result<
        PeerID, Refused
    > {
        visitors[id]?.visits += 1
        visitors[id]?.source = source
        visitors[id]?.lastSeen = now
        return .success(id)
    }

    /// Notes that a WebSocket of a guest is over.
    mutating func left(_ id: PeerID, at now: Moment) {
        visitors[id]?.visits -= 1
        visitors[id]?.lastSeen = now
    }

    /// Counts bytes that a guest has sent or was sent. Returns how many there are in all.
    mutating func count(_ bytes: Int, of id: PeerID) -> Int {
        visitors[id]?.byteCount += bytes
        return visitors[id]?.byteCount ?? 0
    }

    /// Forgets a guest, which then cannot come back without another invitation. Returns false if there is none.
    mutating func revoke(_ id: PeerID) -> Bool {
        guard visitors.removeValue(forKey: id) != nil else { return false }
        invitations = invitations.filter { $0.value.guest != id }
        revoked = revoked.suffix(Self.mostSources - 1) + [id]
        return true
    }

    /// The guests that are here, or may come back.
    package func guests(at now: Moment) -> [Guest] {
        visitors.filter { $0.value.visits > 0 || now - $0.value.lastSeen < Self.guestTime }
            .sorted { ($0.value.since, $0.key) < ($1.value.since, $1.key) }
            .map { id, visitor in
                Guest(
                    id: id, address: visitor.source, age: (now - visitor.since).duration,
                    isHere: visitor.visits > 0)
            }
    }

    /// Makes room for one more guest: forgets the one that has been away longest. Returns false if all are here.
    private mutating func makeRoom(at now: Moment) -> Bool {
        guard visitors.count >= Self.mostGuests else { return true }
        let away = visitors.filter { $0.value.visits == 0 }
        guard let longest = away.min(by: { $0.value.lastSeen < $1.value.lastSeen }) else { return false }
        visitors[longest.key] = nil
        return true
    }

    private mutating func noteFailure(of source: String, at now: Moment) {
        if failures[source] == nil, failures.count >= Self.mostSources,
            let oldest = failures.min(by: { $0.value.last < $1.value.last })
        {
            failures[oldest.key] = nil
        }
        failures[source, default: Failures(last: now)].count += 1
        failures[source]?.last = now
    }

    private static func hash(_ token: [UInt8]) -> [UInt8] { token.withUnsafeBytes { SHA256.hash($0) } }
}
