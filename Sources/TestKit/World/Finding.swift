import NighCore

/// A broken rule: which one, when, and how.
public struct Finding: Error, CustomStringConvertible, Sendable {
    /// The rules that must always hold in a world.
    public enum Rule: String, Sendable, CaseIterable {
        /// A reliable message arrives once.
        case exactlyOnce = "exactly once"
        /// A lane's messages arrive in order, without a gap, unchanged.
        case order
        /// A message that a session accepted arrives unless the conversation ends.
        case delivery
        /// In an encrypted world, no session accepts data that was changed on the way.
        case authentic = "nothing changed gets in"
        /// An unreliable message arrives unchanged, at most once.
        case unreliable
        /// Peers change their state only as allowed: from the state reported last, and with a cause if something
        /// failed.
        case moves
        /// Both ends agree in the end, and nobody stays in an intermediate state.
        case agreement
        /// There is one link per pair of peers.
        case oneLink = "one link"
        /// A peer that is gone is seen nowhere; a peer that is present is seen once.
        case ghosts
        /// Every limit is kept.
        case bounds
        /// Every call of the program is answered once, and in time.
        case calls
        /// A session calls nothing back after it has closed.
        case silence
        /// A conversation uses the best available transport.
        case ways
        /// Conversations survive the faults that they promise to survive.
        case endurance
        /// The network comes to rest.
        case progress
        /// A peer is a member of a group only where neither of the two refuses the other, and is told who refuses it.
        case refusals
        /// Two peers are paired only after both users have confirmed the same digits.
        case pairing
        /// Nothing is left over.
        case leaks
        /// The state of a session is consistent, and the counts at the two ends of a conversation fit together.
        case consistency
    }

    /// The seed of the world.
    public let seed: UInt64
    /// The broken rule.
    public let rule: Rule
    /// How it was broken.
    public let message: String
    /// The moment, in virtual time.
    public let moment: Moment
    /// How a person can reproduce it.
    public internal(set) var replay: String
    /// The last log lines before the rule was broken.
    public internal(set) var log: [String] = []

    /// Removes the log lines, for callers that show the whole log themselves.
    public mutating func forgetLog() { log = [] }

    /// The finding, how to reproduce it, and its log lines.
    public var description: String {
        var text = "seed \(seed): \(rule.rawValue): \(message) (at \(moment))\n  replay: \(replay)"
        for line in log { text += "\n  | \(line)" }
        return text
    }
}

/// A broken rule, without the world in which it was broken.
package struct Violation: Equatable, Sendable {
    /// The broken rule.
    package let rule: Finding.Rule
    /// How it was broken.
    package let message: String

    init(_ rule: Finding.Rule, _ message: String) {
        self.rule = rule
        self.message = message
    }
}

/// What happened in one world or several. It shows that the rules were really tested.
public struct WorldCounts: Sendable, Equatable {
    /// The number of worlds.
    public var worlds = 0
    /// Sessions started, including restarts.
    public var sessions = 0
    /// The virtual time that has passed, in milliseconds.
    public var milliseconds = 0
    /// Pieces of work that the loops have done.
    public var work = 0
    /// Invitations made.
    public var invitations = 0
    /// Conversations that began, counted at each end.
    public var conversations = 0
    /// Conversations that lost their link and resumed on another, counted at each end.
    public var reconnects = 0
    /// Links lost, counted at each end.
    public var interruptions = 0
    /// Reliable messages accepted.
    public var messagesSent = 0
    /// Reliable messages that arrived.
    public var messagesReceived = 0
    /// Those of them that had a kind, and so were not for the program.
    public var kindsReceived = 0
    /// Messages to groups that arrived, counted at each member.
    public var groupMessages = 0
    /// Messages read from channels.
    public var channelMessages = 0
    /// Questions that users have asked each other's programs.
    public var questions = 0
    /// Questions that a program has answered, also with an error.
    public var answers = 0
    /// Calls that users have made to actors of others.
    public var actorCalls = 0
    /// Those of them that an actor has answered, also with an error, or that were refused.
    public var actorAnswers = 0
    /// Payload bytes of the reliable messages that arrived.
    public var bytesReceived = 0
    /// Messages that a session had to send again on another link.
    public var messagesResent = 0
    /// Unreliable messages that sessions accepted.
    public var unreliableSent = 0
    /// Unreliable messages that arrived.
    public var unreliableReceived = 0
    /// Packets that arrived beside links, of those links that sessions had when they were killed.
    public var packets = 0
    /// Sends refused because the buffer was full.
    public var refusedSends = 0
    /// Conversations that moved to another transport without a change of state, counted at each end.
    public var moves = 0
    /// Peers paired, counted at each end.
    public var pairings = 0
    /// Links that ended because of wrong bits, counted at the end that noticed.
    public var damagedLinks = 0
    /// Pipes cut on purpose.
    public var cuts = 0
    /// Blocks and stalls, without partitions.
    public var blocks = 0
    /// Partitions.
    public var partitions = 0
    /// Strangers that announced a peer's PeerID.
    public var impostors = 0
    /// Sessions killed.
    public var kills = 0
    /// Sessions started again after a kill or a close.
    public var restarts = 0
    /// Byte streams opened.
    public var streams = 0
    /// Bytes read from byte streams.
    public var streamBytes = 0
    /// Offers of files that users have sent, repeated ones included.
    public var offers = 0
    /// Offers of which every file has arrived.
    public var deliveries = 0
    /// Bytes of files that passed through streams.
    public var fileBytes = 0
    /// Pings that were answered.
    public var pings = 0
    /// Conversations that another peer carried at the end, counted at each end.
    public var relayed = 0

    /// Creates counts that are all zero.
    public init() {}

    /// Adds each count of `right` to the same count of `left`.
    public static func += (left: inout WorldCounts, right: WorldCounts) {
        let fields: [WritableKeyPath<WorldCounts, Int>] = [
            \.worlds, \.sessions, \.milliseconds, \.work, \.invitations, \.conversations, \.reconnects,
            \.interruptions, \.messagesSent, \.messagesReceived, \.kindsReceived, \.groupMessages,
            \.channelMessages, \.questions, \.answers, \.actorCalls, \.actorAnswers,
            \.bytesReceived, \.messagesResent, \.unreliableSent, \.unreliableReceived, \.packets,
            \.refusedSends, \.cuts,
            \.blocks,
            \.partitions, \.kills,
            \.restarts, \.pings, \.pairings, \.moves, \.damagedLinks, \.impostors,
            \.relayed, \.streams, \.streamBytes, \.offers, \.deliveries, \.fileBytes,
        ]
        for field in fields { left[keyPath: field] += right[keyPath: field] }
    }
}

/// The result of a world.
public struct WorldReport: Sendable {
    /// The seed of the world.
    public let seed: UInt64
    /// What happened in it.
    public let counts: WorldCounts
    /// A hash of everything that happened; the same for every run of the seed.
    public let hash: UInt64
    /// The first broken rule; nil if all rules held.
    public let finding: Finding?
    /// The log lines, if requested.
    public let log: [String]
}
