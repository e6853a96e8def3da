import NighCore
import NighTestKit

/// A broken rule: which one, when, and how.
package struct Finding: Error, CustomStringConvertible, Sendable {
    /// The seed of the world.
    package let seed: UInt64
    /// The broken rule.
    package let rule: Violation.Rule
    /// How it was broken.
    package let message: String
    /// The moment, in virtual time.
    package let moment: Moment
    /// How a person can reproduce it.
    package internal(set) var replay: String
    /// The last log lines before the rule was broken.
    package internal(set) var log: [String] = []

    /// Removes the log lines, for callers that show the whole log themselves.
    package mutating func forgetLog() { log = [] }

    /// The finding, how to reproduce it, and its log lines.
    package var description: String {
        var text = "seed \(seed): \(rule.rawValue): \(message) (at \(moment))\n  replay: \(replay)"
        for line in log { text += "\n  | \(line)" }
        return text
    }
}

/// Counts of the events in one world or several. They show that the rules were really tested.
package struct WorldCounts: Sendable, Equatable {
    /// The number of worlds.
    package var worlds = 0
    /// Sessions started, including restarts.
    package var sessions = 0
    /// The virtual time that has passed, in milliseconds.
    package var milliseconds = 0
    /// Pieces of work that the loops have done.
    package var work = 0
    /// Invitations made.
    package var invitations = 0
    /// Conversations that began, counted at each end.
    package var conversations = 0
    /// Conversations that lost their link and resumed on another, counted at each end.
    package var reconnects = 0
    /// Links lost, counted at each end.
    package var interruptions = 0
    /// Reliable messages accepted.
    package var messagesSent = 0
    /// Reliable messages that arrived.
    package var messagesReceived = 0
    /// Those of them that had a kind, and so were not for the program.
    package var kindsReceived = 0
    /// Messages to groups that arrived, counted at each member.
    package var groupMessages = 0
    /// Messages read from channels.
    package var channelMessages = 0
    /// Questions that users have asked each other's programs.
    package var questions = 0
    /// Questions that a program has answered, also with an error.
    package var answers = 0
    /// Calls that users have made to actors of others.
    package var actorCalls = 0
    /// Those of them that an actor has answered, also with an error, or that were refused.
    package var actorAnswers = 0
    /// Payload bytes of the reliable messages that arrived.
    package var bytesReceived = 0
    /// Messages that a session had to send again on another link.
    package var messagesResent = 0
    /// Unreliable messages that sessions accepted.
    package var unreliableSent = 0
    /// Unreliable messages that arrived.
    package var unreliableReceived = 0
    /// Packets that arrived beside links, of those links that sessions had when they were killed.
    package var packets = 0
    /// Sends refused because the buffer was full.
    package var refusedSends = 0
    /// Conversations that moved to another transport without a change of state, counted at each end.
    package var moves = 0
    /// Peers paired, counted at each end.
    package var pairings = 0
    /// Links that ended because of wrong bits, counted at the end that noticed.
    package var damagedLinks = 0
    /// Pipes cut on purpose.
    package var cuts = 0
    /// Blocks and stalls, without partitions.
    package var blocks = 0
    /// Partitions.
    package var partitions = 0
    /// Strangers that announced a peer's PeerID.
    package var impostors = 0
    /// Sessions killed.
    package var kills = 0
    /// Sessions started again after a kill or a close.
    package var restarts = 0
    /// Byte streams opened.
    package var streams = 0
    /// Bytes read from byte streams.
    package var streamBytes = 0
    /// Offers of files that users have sent, repeated ones included.
    package var offers = 0
    /// Offers of which every file has arrived.
    package var deliveries = 0
    /// Bytes of files that passed through streams.
    package var fileBytes = 0
    /// Pings that were answered.
    package var pings = 0
    /// Conversations that another peer carried at the end, counted at each end.
    package var relayed = 0

    /// Creates counts that are all zero.
    package init() {}

    /// Adds each count of `right` to the same count of `left`.
    package static func += (left: inout WorldCounts, right: WorldCounts) {
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
package struct WorldReport: Sendable {
    /// The seed of the world.
    package let seed: UInt64
    /// Counts of the events in it.
    package let counts: WorldCounts
    /// A hash of everything that happened; the same for every run of the seed.
    package let hash: UInt64
    /// The first broken rule; nil if all rules held.
    package let finding: Finding?
    /// The log lines, if requested.
    package let log: [String]
}
