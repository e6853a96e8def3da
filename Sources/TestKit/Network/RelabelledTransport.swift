import NighCore

/// Wraps a transport for a test: gives it another scheme and priority, wraps its pipes, or reports given addresses.
///
/// With another scheme, a session can have two transports over memory. With `finds` off, the transport finds nobody and
/// only reports `knownAddresses`.
package final class RelabelledTransport: Transport, TransportEventHandler, @unchecked Sendable {
    // Confined to the virtual loop, like what it wraps.
    package let scheme: String
    package let capabilities: TransportCapabilities
    private let inner: any Transport
    private var events: (any TransportEvents)?
    private var loop: (any EventLoop)?
    private var isBrowsing = false
    /// The addresses that it reports in `addressKnown` when it browses.
    package var knownAddresses: [TransportAddress] = []
    /// Whether browsing finds what is advertised.
    package var finds = true
    /// Returns the places behind an address. A dial of the address goes to the first place.
    package var placesBehind: (TransportAddress) -> [TransportAddress] = { [$0] }
    /// Returns whether to dial the first address, which a peer at the second one has given.
    package var mayDialIntroduced: (TransportAddress, TransportAddress?) -> Bool = { _, _ in true }
    /// Wraps each opened pipe.
    private let wrap: (any Pipe) -> any Pipe

    package init(
        _ inner: any Transport, scheme: String, priority: Int,
        wrap: @escaping (any Pipe) -> any Pipe = { $0 }
    ) {
        self.wrap = wrap
        self.inner = inner
        self.scheme = scheme
        var capabilities = inner.capabilities
        capabilities.priority = priority
        self.capabilities = capabilities
    }

    package func prepare(for peer: PeerID, of identity: PeerID) { inner.prepare(for: peer, of: identity) }

    package func start(on loop: any EventLoop, events: any TransportEvents) {
        self.events = events
        self.loop = loop
        inner.start(on: loop, events: self)
    }

    package func advertise(_ advertisement: Advertisement) { inner.advertise(advertisement) }
    package func updateAdvertisement(_ advertisement: Advertisement) {
        inner.updateAdvertisement(advertisement)
    }
    package func stopAdvertising() { inner.stopAdvertising() }
    package func browse(_ service: ServiceName) {
        isBrowsing = true
        if finds { inner.browse(service) }
        loop?.execute {
            guard self.isBrowsing else { return }
            for address in self.knownAddresses { self.events?.addressKnown(address, by: self) }
        }
    }

    package func stopBrowsing() {
        isBrowsing = false
        inner.stopBrowsing()
    }
    package func cancelDial(_ dial: DialID) { inner.cancelDial(dial) }
    package func diagnose() -> [Diagnosis] { inner.diagnose() }

    package func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        let place = placesBehind(address).first ?? address
        inner.dial(TransportAddress(scheme: inner.scheme, value: place.value), as: dial, timeout: timeout)
    }

    package func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) { found(.success(placesBehind(address))) }

    package func mayDial(_ address: TransportAddress, introducedBy introducer: TransportAddress?) -> Bool {
        mayDialIntroduced(address, introducer)
    }

    package func shutdown() {
        inner.shutdown()
        events = nil
    }

    private func relabel(_ address: TransportAddress) -> TransportAddress {
        TransportAddress(scheme: scheme, value: address.value)
    }

    private func relabel(_ error: NighError) -> NighError {
        var error = error
        error.transport = scheme
        return error
    }

    private func relabel(_ sighting: Sighting) -> Sighting {
        Sighting(
            address: relabel(sighting.address), advertisement: sighting.advertisement,
            quality: sighting.quality)
    }

    private func relabel(_ pipe: any Pipe) -> any Pipe {
        scheme == inner.scheme ? pipe : RelabelledPipe(pipe, scheme: scheme)
    }

    private func relabel(_ event: TransportEvent) -> TransportEvent {
        switch event {
        case .routeFound(let sighting): .routeFound(relabel(sighting))
        case .routeChanged(let sighting): .routeChanged(relabel(sighting))
        case .routeLost(let address): .routeLost(relabel(address))
        case .addressKnown(let address): .addressKnown(relabel(address))
        case .pipeOpened(let pipe, let dial): .pipeOpened(wrap(relabel(pipe)), dial: dial)
        case .dialFailed(let dial, let error): .dialFailed(dial, relabel(error))
        case .advertisingFailed(let error): .advertisingFailed(relabel(error))
        case .browsingFailed(let error): .browsingFailed(relabel(error))
        case .listeningChanged(let addresses): .listeningChanged(addresses.map { relabel($0) })
        case .transportChanged(.down(let error)): .transportChanged(.down(relabel(error)))
        case .advertised, .transportChanged(.up): event
        }
    }

    package func handle(_ event: TransportEvent, by transport: any Transport) {
        if let events { relabel(event).report(to: events, by: self) }
    }
}

/// A pipe whose addresses and errors carry the new scheme of its transport.
private final class RelabelledPipe: ForwardingPipe {
    let inner: any Pipe
    private let scheme: String

    init(_ inner: any Pipe, scheme: String) {
        self.inner = inner
        self.scheme = scheme
    }

    var localAddress: TransportAddress? { inner.localAddress.map(relabel) }
    var remoteAddress: TransportAddress? { inner.remoteAddress.map(relabel) }

    private func relabel(_ address: TransportAddress) -> TransportAddress {
        TransportAddress(scheme: scheme, value: address.value)
    }

    func openDatagrams() -> (any DatagramPort)? { inner.openDatagrams() }

    func reportClosed(_ error: NighError?, to handler: any PipeHandler) {
        var error = error
        error?.transport = scheme
        handler.pipeClosed(self, error: error)
    }
}
