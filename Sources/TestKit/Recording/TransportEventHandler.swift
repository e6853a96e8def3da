import NighCore

/// Receives all events of a transport in one function, for test doubles that react to a few of them or pass them on.
public protocol TransportEventHandler: TransportEvents {
    /// Handles `event`, which `transport` reported.
    func handle(_ event: TransportEvent, by transport: any Transport)
}

extension TransportEventHandler {
    /// Calls `handle` with `.routeFound`.
    public func routeFound(_ sighting: Sighting, by transport: any Transport) {
        handle(.routeFound(sighting), by: transport)
    }

    /// Calls `handle` with `.routeChanged`.
    public func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        handle(.routeChanged(sighting), by: transport)
    }

    /// Calls `handle` with `.routeLost`.
    public func routeLost(_ address: TransportAddress, by transport: any Transport) {
        handle(.routeLost(address), by: transport)
    }

    /// Calls `handle` with `.addressKnown`.
    public func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        handle(.addressKnown(address), by: transport)
    }

    /// Calls `handle` with `.pipeOpened`.
    public func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        handle(.pipeOpened(pipe, dial: dial), by: transport)
    }

    /// Calls `handle` with `.dialFailed`.
    public func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        handle(.dialFailed(dial, error), by: transport)
    }

    /// Calls `handle` with `.advertised`.
    public func advertised(as name: DisplayName, by transport: any Transport) {
        handle(.advertised(name), by: transport)
    }

    /// Calls `handle` with `.advertisingFailed`.
    public func advertisingFailed(_ error: NighError, by transport: any Transport) {
        handle(.advertisingFailed(error), by: transport)
    }

    /// Calls `handle` with `.browsingFailed`.
    public func browsingFailed(_ error: NighError, by transport: any Transport) {
        handle(.browsingFailed(error), by: transport)
    }

    /// Calls `handle` with `.listeningChanged`.
    public func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        handle(.listeningChanged(addresses), by: transport)
    }

    /// Calls `handle` with `.transportChanged`.
    public func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        handle(.transportChanged(condition), by: transport)
    }
}
