import NighCore
import NighFiles

/// When `nigh send` gives up because nothing moves. A value: its owner passes each change to it.
struct SendPatience {
    /// How long nothing may move before the other side has accepted, or while there is no link to it.
    let untilAccepted: Moment.Span
    /// How long nothing may move from then on. A slow disk at the other side may take minutes for the bytes that it has
    /// been sent.
    let onceAccepted: Moment.Span
    /// Whether all files can be read more than once. The bytes of a pipe come whenever its writer likes.
    let canBeRepeated: Bool
    /// When something last moved.
    private var movedAt: Moment
    /// When the link was lost; nil while there is one.
    private var lostAt: Moment?
    private var progress: FileProgress?

    /// The default if the user does not say how long.
    static let untilAccepted = Duration.seconds(60)
    private static let onceAccepted = Duration.seconds(600)

    /// - Parameter chosen: how long nothing may move at any time, if the user said so.
    init(_ chosen: Duration?, canBeRepeated: Bool, at now: Moment) {
        untilAccepted = Moment.Span(chosen ?? Self.untilAccepted)
        onceAccepted = Moment.Span(chosen ?? Self.onceAccepted)
        self.canBeRepeated = canBeRepeated
        movedAt = now
    }

    /// A conversation has begun.
    mutating func begin(at now: Moment) {
        (movedAt, lostAt, progress) = (now, nil, nil)
    }

    mutating func lostLink(at now: Moment) { lostAt = now }

    mutating func foundLink() { lostAt = nil }

    /// Notes how far the transfer is.
    mutating func note(_ progress: FileProgress, at now: Moment) {
        if progress.movement != self.progress?.movement { movedAt = now }
        self.progress = progress
    }

    /// Returns the time that is over, if nothing has moved for too long.
    func exceeded(at now: Moment) -> Moment.Span? {
        let state = progress?.state ?? .waiting
        // A side that has paused has said why.
        guard state.pause == nil else { return nil }
        let limit: Moment.Span
        var since = movedAt
        if state == .waiting {
            limit = untilAccepted
        } else if !canBeRepeated {
            return nil
        } else if now - movedAt < onceAccepted, let lostAt {
            limit = untilAccepted
            since = max(movedAt, lostAt)
        } else {
            limit = onceAccepted
        }
        return now - since >= limit ? limit : nil
    }
}

extension FileProgress {
    /// Whether it is known of each file and folder whether it arrived.
    var isDecided: Bool { itemCount > 0 && itemsDone + itemsFailed == itemCount }

    /// The part that changes whenever something moves.
    fileprivate var movement: Movement {
        Movement(
            state: state, done: done, transferred: transferred, resumed: resumed,
            decided: itemsDone + itemsFailed)
    }

    fileprivate struct Movement: Equatable {
        let state: State
        let done, transferred, resumed, decided: Int
    }
}
