import NighCore

/// The visitors that can stay at a table when its host leaves. The host sends the list to each of them.
public struct TablePeople: Hashable, Sendable {
    /// The guest, which takes over the table; nil if there is none, or if it cannot.
    var guest: PeerID?
    /// The watchers, in the order in which they came. They are offered the free seat in this order.
    var watchers: [PeerID] = []

    /// All of them.
    var all: [PeerID] { (guest.map { [$0] } ?? []) + watchers }
}
