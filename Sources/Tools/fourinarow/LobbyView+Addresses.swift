import FourInARow
import Guests
import NighCore

extension LobbyView {
    /// The addresses at which others reach the local player's table. Only the bot in this program can use the address
    /// in memory, and only a guest with a code those for browsers, so they are left out.
    var addressesForOthers: [TransportAddress] {
        addresses.filter { $0.scheme != "memory" && $0.scheme != TransportForGuests.scheme }
    }

    /// Whether guests can come to the local player's table now.
    var isOpenToGuests: Bool {
        guard case .hosting = place else { return false }
        return addresses.contains { $0.scheme == TransportForGuests.scheme }
    }
}
