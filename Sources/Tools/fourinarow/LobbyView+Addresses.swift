import FourInARow
import NighCore

extension LobbyView {
    /// The addresses at which others reach the local player's table. Only the bot in this program can use the address
    /// in memory, so it is left out.
    var addressesForOthers: [TransportAddress] { addresses.filter { $0.scheme != "memory" } }
}
