import NighCore

/// A call of `TransportEvents` as a value, so that a test can record it, compare its text, or pass it on.
public enum TransportEvent: CustomStringConvertible {
    /// A call of `routeFound`.
    case routeFound(Sighting)
    /// A call of `routeChanged`.
    case routeChanged(Sighting)
    /// A call of `routeLost`.
    case routeLost(TransportAddress)
    /// A call of `addressKnown`.
    case addressKnown(TransportAddress)
    /// A call of `pipeOpened`.
    case pipeOpened(any Pipe, dial: DialID?)
    /// A call of `dialFailed`.
    case dialFailed(DialID, NighError)
    /// A call of `advertised`.
    case advertised(DisplayName)
    /// A call of `advertisingFailed`.
    case advertisingFailed(NighError)
    /// A call of `browsingFailed`.
    case browsingFailed(NighError)
    /// A call of `listeningChanged`.
    case listeningChanged([TransportAddress])
    /// A call of `transportChanged`.
    case transportChanged(TransportCondition)

    /// The event in a few words, such as `found memory://puma Puma`.
    public var description: String {
        switch self {
        case .routeFound(let sighting): "found \(sighting.address) \(sighting.advertisement.name)"
        case .routeChanged(let sighting): "changed \(sighting.address) \(sighting.advertisement.name)"
        case .routeLost(let address): "lost \(address)"
        case .addressKnown(let address): "known \(address)"
        case .pipeOpened(_, let dial): dial.map { "dialled \($0.number)" } ?? "accepted"
        case .dialFailed(let dial, let error): "failed \(dial.number): \(error.cause)"
        case .advertised(let name): "advertised as \(name)"
        case .advertisingFailed(let error): "not advertising: \(error)"
        case .browsingFailed(let error): "not browsing: \(error)"
        case .listeningChanged(let addresses): "listening \(addresses)"
        case .transportChanged(.up): "up"
        case .transportChanged(.down(let error)): "down: \(error)"
        }
    }

    /// Makes the call to `events`, on behalf of `transport`.
    public func report(to events: any TransportEvents, by transport: any Transport) {
        switch self {
        case .routeFound(let sighting): events.routeFound(sighting, by: transport)
        case .routeChanged(let sighting): events.routeChanged(sighting, by: transport)
        case .routeLost(let address): events.routeLost(address, by: transport)
        case .addressKnown(let address): events.addressKnown(address, by: transport)
        case .pipeOpened(let pipe, let dial): events.pipeOpened(pipe, dial: dial, by: transport)
        case .dialFailed(let dial, let error): events.dialFailed(dial, error: error, by: transport)
        case .advertised(let name): events.advertised(as: name, by: transport)
        case .advertisingFailed(let error): events.advertisingFailed(error, by: transport)
        case .browsingFailed(let error): events.browsingFailed(error, by: transport)
        case .listeningChanged(let addresses): events.listeningChanged(addresses, by: transport)
        case .transportChanged(let condition): events.transportChanged(condition, by: transport)
        }
    }
}
