/// What has changed about the routes that a transport sees.
package enum SightingChange: Hashable, Sendable {
    /// Somebody is to be seen who was not.
    case found(Sighting)
    /// At the same address, something else is said.
    case changed(Sighting)
    /// Nobody is to be seen there any more.
    case lost(TransportAddress)
}

extension TransportEvents {
    /// Tells the change as the event that stands for it.
    package func tell(_ change: SightingChange, by transport: any Transport) {
        switch change {
        case .found(let sighting): routeFound(sighting, by: transport)
        case .changed(let sighting): routeChanged(sighting, by: transport)
        case .lost(let address): routeLost(address, by: transport)
        }
    }
}
