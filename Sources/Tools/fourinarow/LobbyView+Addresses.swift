import FourInARow
import Guests
import NighCore

extension LobbyView {
    /// The addresses at which others reach the local player's table. It leaves out the address in memory, which only
    /// the bot in this program can use, and addresses for browsers, which need a code.
    var addressesForOthers: [TransportAddress] {
        addresses.filter { $0.scheme != "memory" && $0.scheme != TransportForGuests.scheme }
    }

    /// Whether guests can come to the local player's table now.
    var isOpenToGuests: Bool {
        guard case .hosting = place else { return false }
        return addresses.contains { $0.scheme == TransportForGuests.scheme }
    }
}
