import NighCore

/// Wraps a transport for a test: gives it another scheme and priority, wraps its pipes, or reports given addresses.
///
/// With another scheme, a session can have two transports over memory. With `finds` off, the transport finds nobody and
/// only reports `knownAddresses`.
package final class RelabelledTransport: Transport, TransportEvents, @unchecked Sendable {
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
    /// Returns whether to dial the first address. A peer at the second one has named it.
    package var mayDialTold: (TransportAddress, TransportAddress?) -> Bool = { _, _ in true }
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

    package func mayDial(_ address: TransportAddress, toldAt teller: TransportAddress?) -> Bool {
        mayDialTold(address, teller)
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

    package func routeFound(_ sighting: Sighting, by transport: any Transport) {
        events?.routeFound(relabel(sighting), by: self)
    }

    package func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        events?.routeChanged(relabel(sighting), by: self)
    }

    package func routeLost(_ address: TransportAddress, by transport: any Transport) {
        events?.routeLost(relabel(address), by: self)
    }

    package func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        events?.addressKnown(relabel(address), by: self)
    }

    package func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        let isRelabelled = scheme != inner.scheme
        let pipe: any Pipe = isRelabelled ? RelabelledPipe(pipe, scheme: scheme) : pipe
        events?.pipeOpened(wrap(pipe), dial: dial, by: self)
    }

    package func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        events?.dialFailed(dial, error: relabel(error), by: self)
    }

    package func advertisingFailed(_ error: NighError, by transport: any Transport) {
        events?.advertisingFailed(relabel(error), by: self)
    }

    package func browsingFailed(_ error: NighError, by transport: any Transport) {
        events?.browsingFailed(relabel(error), by: self)
    }

    package func advertised(as name: DisplayName, by transport: any Transport) {
        events?.advertised(as: name, by: self)
    }

    package func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        events?.listeningChanged(addresses.map(relabel), by: self)
    }

    package func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        switch condition {
        case .up: events?.transportChanged(.up, by: self)
        case .down(let error): events?.transportChanged(.down(relabel(error)), by: self)
        }
    }
}

/// A pipe whose addresses and errors carry the new scheme of its transport.
private final class RelabelledPipe: Pipe {
    private let inner: any Pipe
    private let scheme: String

    init(_ inner: any Pipe, scheme: String) {
        self.inner = inner
        self.scheme = scheme
    }

    var localAddress: TransportAddress? { inner.localAddress.map(relabel) }
    var remoteAddress: TransportAddress? { inner.remoteAddress.map(relabel) }
    var writableBytes: Int { inner.writableBytes }
    var counters: PipeCounters { inner.counters }

    private func relabel(_ address: TransportAddress) -> TransportAddress {
        TransportAddress(scheme: scheme, value: address.value)
    }

    func start(handler: any PipeHandler) { inner.start(handler: Relay(self, to: handler)) }
    func write(_ queue: inout ByteQueue) { inner.write(&queue) }
    func openDatagrams() -> (any DatagramPort)? { inner.openDatagrams() }
    func pauseReading() { inner.pauseReading() }
    func resumeReading() { inner.resumeReading() }
    func close(_ mode: PipeCloseMode) { inner.close(mode) }

    /// Forwards the inner pipe's events. Only the inner pipe holds this object, so the handler lives as long as that
    /// pipe may report events.
    private final class Relay: PipeHandler {
        private let pipe: RelabelledPipe
        private let handler: any PipeHandler

        init(_ pipe: RelabelledPipe, to handler: any PipeHandler) {
            self.pipe = pipe
            self.handler = handler
        }

        func pipe(_ inner: any Pipe, received bytes: ByteSlice) { handler.pipe(pipe, received: bytes) }
        func pipeBecameWritable(_ inner: any Pipe) { handler.pipeBecameWritable(pipe) }
        func pipeEnded(_ inner: any Pipe) { handler.pipeEnded(pipe) }
        func pipeDrained(_ inner: any Pipe) { handler.pipeDrained(pipe) }

        func pipeClosed(_ inner: any Pipe, error: NighError?) {
            var error = error
            error?.transport = pipe.scheme
            handler.pipeClosed(pipe, error: error)
        }
    }
}
