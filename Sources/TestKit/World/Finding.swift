import NighCore

/// Something that must never be: which rule was broken, when, and how.
public struct Finding: Error, CustomStringConvertible, Sendable {
    /// What always holds.
    public enum Rule: String, Sendable, CaseIterable {
        /// A reliable message arrives once.
        case exactlyOnce = "exactly once"
        /// A lane's messages arrive in order, without a gap, unchanged.
        case order
        /// What a session accepted arrives unless the conversation ends.
        case delivery
        /// Where everything is encrypted, nothing that was changed on the way is taken for what a peer said.
        case authentic = "nothing changed gets in"
        /// An unreliable message arrives unchanged, at most once.
        case unreliable
        /// States change by the moves allowed, each from the one told before, with a cause where something failed.
        case moves
        /// Both ends agree in the end, and nobody is left half-way.
        case agreement
        /// One link a pair.
        case oneLink = "one link"
        /// Who is gone is seen nowhere, who is there is seen once.
        case ghosts
        /// Every limit holds.
        case bounds
        /// Every call of the program is answered, once, in time.
        case calls
        /// Nothing is called back after the session closed.
        case silence
        /// A conversation uses the best way there is.
        case ways
        /// Conversations survive what they are said to survive.
        case endurance
        /// The network comes to rest.
        case progress
        /// Nobody is paired but by two people who have confirmed the same digits.
        case pairing
        /// Nothing stays behind.
        case leaks
        /// What a session keeps agrees with itself, and what its conversations count with what the other end counts.
        case consistency
    }

    /// The world it happened in.
    public let seed: UInt64
    /// The rule.
    public let rule: Rule
    /// How it was broken.
    public let words: String
    /// When, in virtual time.
    public let moment: Moment
    /// How to see it again, for a person.
    public internal(set) var replay: String
    /// What happened just before, a line each.
    public internal(set) var log: [String] = []

    /// Keeps the rest only, for where the whole log was shown.
    public mutating func forgetLog() { log = [] }

    /// All of it, with how to see it again.
    public var description: String {
        var text = "seed \(seed): \(rule.rawValue): \(words) (at \(moment))\n  replay: \(replay)"
        for line in log { text += "\n  | \(line)" }
        return text
    }
}

/// A broken rule, before it is known in which world.
package struct Fault: Equatable, Sendable {
    /// The rule.
    package let rule: Finding.Rule
    /// How it was broken.
    package let words: String

    init(_ rule: Finding.Rule, _ words: String) {
        self.rule = rule
        self.words = words
    }
}

/// What happened in one world or many: shows that the rules were really put to the test.
public struct WorldCounts: Sendable, Equatable {
    /// Worlds.
    public var worlds = 0
    /// Sessions started, restarts included.
    public var sessions = 0
    /// Virtual time that passed, in milliseconds.
    public var milliseconds = 0
    /// Pieces of work the loops did.
    public var work = 0
    /// Invitations made.
    public var invitations = 0
    /// Conversations begun, counted at each end.
    public var conversations = 0
    /// Links lost and conversations carried on over another, counted at each end.
    public var reconnects = 0
    /// Links lost, counted at each end.
    public var interruptions = 0
    /// Reliable messages accepted.
    public var messagesSent = 0
    /// Reliable messages arrived.
    public var messagesReceived = 0
    /// Payload bytes arrived.
    public var bytesReceived = 0
    /// Messages a session had to send again on another link.
    public var messagesResent = 0
    /// Unreliable messages handed over.
    public var unreliableSent = 0
    /// Unreliable messages arrived.
    public var unreliableReceived = 0
    /// Sends refused because the buffer was full.
    public var refusedSends = 0
    /// Conversations that changed their transport with nobody losing anybody, counted at each end.
    public var moves = 0
    /// Peers paired, counted at each end.
    public var pairings = 0
    /// Links that ended because bits on them were wrong, counted at the end that found out.
    public var damagedLinks = 0
    /// Pipes cut on purpose.
    public var cuts = 0
    /// Blocks and stalls, partitions apart.
    public var blocks = 0
    /// Partitions.
    public var partitions = 0
    /// Strangers that announced themselves as inhabitants.
    public var impostors = 0
    /// Sessions killed.
    public var kills = 0
    /// Sessions started anew after a kill or close.
    public var restarts = 0
    /// Pings answered with a time.
    public var pings = 0

    /// All zero.
    public init() {}

    /// Adds up.
    public static func += (left: inout WorldCounts, right: WorldCounts) {
        let fields: [WritableKeyPath<WorldCounts, Int>] = [
            \.worlds, \.sessions, \.milliseconds, \.work, \.invitations, \.conversations, \.reconnects,
            \.interruptions, \.messagesSent, \.messagesReceived, \.bytesReceived, \.messagesResent,
            \.unreliableSent, \.unreliableReceived, \.refusedSends, \.cuts, \.blocks, \.partitions, \.kills,
            \.restarts, \.pings, \.pairings, \.moves, \.damagedLinks, \.impostors,
        ]
        for field in fields { left[keyPath: field] += right[keyPath: field] }
    }
}

/// How a world went.
public struct WorldReport: Sendable {
    /// Its seed.
    public let seed: UInt64
    /// What happened in it.
    public let counts: WorldCounts
    /// The same for every run of the seed.
    public let hash: UInt64
    /// The first rule broken; nil when all held.
    public let finding: Finding?
    /// What happened, a line each, where that was asked for.
    public let log: [String]
}
