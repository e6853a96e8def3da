import FourInARow
import NighCore

extension LobbyView {
    /// The addresses at which others reach this side's table. The machine in this program has a way of its own, which is nobody
    /// else's.
    var waysForOthers: [TransportAddress] { addresses.filter { $0.scheme != "memory" } }
}
