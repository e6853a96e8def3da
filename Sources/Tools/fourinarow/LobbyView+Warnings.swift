import FourInARow
import SessionArguments

extension SeatRequest {
    /// The warning that the person reads before they let this peer sit down.
    var warning: PeerWarning? { PeerWarning(id, name: name, trust: trust) }
}

extension TableListing {
    /// The warning that the person reads before they go to this table.
    var warning: PeerWarning? { PeerWarning(id, name: name, trust: trust) }
}

extension Person {
    /// Whether the person is a guest in a browser, without a key and without encryption.
    var isGuest: Bool { trust == .guest }
}
