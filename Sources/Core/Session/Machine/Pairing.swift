/// A pairing with a peer that is under way.
struct Pairing {
    /// When the pairing is given up.
    let deadline: Moment
    /// The program's call, if this side asked.
    var token: CallToken?
    /// The search for a link, if there was none.
    var race: DialRace?
    /// The link that carries the pairing, and how far it is; nil until there is a link.
    var link: Link?
    var exchange: PairingExchange?
    /// The position in the queue for this side's nonce; nil if the peer does not wait for it.
    var turn: UInt64?
    /// When the peer must have revealed its nonce, once it has this side's.
    var revealDeadline = Moment.never
    /// Whether the program was given the digits.
    var showsCode = false

    /// Whether a person of this side has to do with the pairing. Until then, the program does not know of it.
    var isKnownToPerson: Bool { token != nil || showsCode }
}
