import NighCore

/// The places for senders to `nigh receive`: whether one is free, and which sender loses its place to another one. A
/// value, without I/O.
struct SenderPlaces {
    /// A sender that has a place.
    struct Holder: Equatable {
        let peer: PeerID
        /// A number that grows with each place that is given.
        let number: Int
        let isPaired: Bool
        /// Whether its files were accepted.
        let isAccepted: Bool
        /// When a byte of its transfer last moved; at first, when it got its place.
        let movedAt: Moment
    }

    enum Decision: Equatable {
        case free
        /// This sender loses its place.
        case inPlace(of: PeerID)
        case busy
    }

    /// The number of places.
    let count: Int
    /// Whether an accepted transfer keeps its place while it moves, even if a paired device wants to send: a person has
    /// accepted it, or there is a place for one transfer only.
    let keepsMoving: Bool

    /// The time without a byte after which an accepted transfer loses its place to another sender.
    static let idleLimit = Moment.Span.seconds(30)

    /// Decides about a peer that wants to send. Paired devices come first: no paired device loses its place to another
    /// peer, and one that wants to send gets the place of any peer, if need be.
    func decision(forPaired isPaired: Bool, among holders: [Holder], at now: Moment) -> Decision {
        guard holders.count >= count else { return .free }
        let others = holders.filter { !$0.isPaired }
        let idle = holders.filter { $0.isAccepted && now - $0.movedAt >= Self.idleLimit }
        let loser: Holder?
        if isPaired {
            loser =
                others.filter { !$0.isAccepted }.max { $0.number < $1.number }
                ?? Self.longestIdle(keepsMoving ? idle.filter { !$0.isPaired } : others)
                ?? Self.longestIdle(idle)
        } else {
            loser = Self.longestIdle(idle.filter { !$0.isPaired })
        }
        return loser.map { .inPlace(of: $0.peer) } ?? .busy
    }

    private static func longestIdle(_ holders: [Holder]) -> Holder? {
        holders.min { ($0.movedAt, $0.number) < ($1.movedAt, $1.number) }
    }
}
