/// This side and a peer are being paired.
struct Pairing {
    /// When to give up.
    let deadline: Moment
    /// The program's call, where this side asked.
    var token: CallToken?
    /// Looks for a link, where there was none.
    var race: DialRace?
    /// Where it happens, and how far it is; nil until there is a link.
    var link: Link?
    var exchange: PairingExchange?
}
