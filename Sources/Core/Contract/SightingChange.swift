/// A change in the routes that a transport sees.
package enum SightingChange: Hashable, Sendable {
    /// A peer is seen at an address where it was not seen before.
    case found(Sighting)
    /// The peer at the same address advertises something else.
    case changed(Sighting)
    /// The peer is no longer seen at this address.
    case lost(TransportAddress)
}

extension TransportEvents {
    /// Reports the change as `routeFound`, `routeChanged` or `routeLost`.
    package func report(_ change: SightingChange, by transport: any Transport) {
        switch change {
        case .found(let sighting): routeFound(sighting, by: transport)
        case .changed(let sighting): routeChanged(sighting, by: transport)
        case .lost(let address): routeLost(address, by: transport)
        }
    }
}
