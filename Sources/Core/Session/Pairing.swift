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
}
