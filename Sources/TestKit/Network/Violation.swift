/// A broken rule: which one, and how.
package struct Violation: Equatable, Sendable {
    /// The rules that hold in every network, also while wires break and programs die.
    package enum Rule: String, Sendable, CaseIterable {
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
        /// Two peers meet in a group only if neither refuses the other. A refused peer is told who refused it.
        case refusals
        /// Two peers are paired only after both users have confirmed the same digits.
        case pairing
        /// Nothing is left over.
        case leaks
        /// The state of a session is consistent, and the counts at the two ends of a conversation fit together.
        case consistency
    }

    /// The broken rule.
    package let rule: Rule
    /// How it was broken.
    package let message: String

    /// Creates the report of a broken rule.
    package init(_ rule: Rule, _ message: String) {
        self.rule = rule
        self.message = message
    }
}
