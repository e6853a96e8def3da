import NighMemory

@testable import NighCore

/// A transport under another scheme and priority, so that a test can give a session two ways over memory; one whose
/// pipes a test looks into; or one that was given addresses and may find nobody by itself.
final class RelabelledTransport: Transport, TransportEvents, @unchecked Sendable {
    // Confined to the virtual loop, like what it wraps.
    let scheme: String
    let capabilities: TransportCapabilities
    private let inner: any Transport
    private var events: (any TransportEvents)?
    private var loop: (any EventLoop)?
    /// Told while it browses.
    var knownAddresses: [TransportAddress] = []
    /// Whether it sees what is advertised.
    var finds = true
    /// Put around each pipe.
    private let wrap: (any Pipe) -> any Pipe

    init(
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

    func start(on loop: any EventLoop, events: any TransportEvents) {
        self.events = events
        self.loop = loop
        inner.start(on: loop, events: self)
    }

    func advertise(_ advertisement: Advertisement) { inner.advertise(advertisement) }
    func updateAdvertisement(_ advertisement: Advertisement) { inner.updateAdvertisement(advertisement) }
    func stopAdvertising() { inner.stopAdvertising() }
    func browse(_ service: ServiceName) {
        if finds { inner.browse(service) }
        loop?.execute { for address in self.knownAddresses { self.events?.addressKnown(address, by: self) } }
    }

    func stopBrowsing() { inner.stopBrowsing() }
    func cancelDial(_ dial: DialID) { inner.cancelDial(dial) }
    func diagnose() -> [Diagnosis] { inner.diagnose() }

    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        inner.dial(TransportAddress(scheme: inner.scheme, value: address.value), as: dial, timeout: timeout)
    }

    func shutdown() {
        inner.shutdown()
        events = nil
    }

    private func relabel(_ address: TransportAddress) -> TransportAddress {
        TransportAddress(scheme: scheme, value: address.value)
    }

    private func relabel(_ sighting: Sighting) -> Sighting {
        Sighting(
            address: relabel(sighting.address), advertisement: sighting.advertisement,
            quality: sighting.quality)
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {
        events?.routeFound(relabel(sighting), by: self)
    }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        events?.routeChanged(relabel(sighting), by: self)
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        events?.routeLost(relabel(address), by: self)
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        events?.addressKnown(relabel(address), by: self)
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        events?.pipeOpened(wrap(pipe), dial: dial, by: self)
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        var error = error
        error.transport = scheme
        events?.dialFailed(dial, error: error, by: self)
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        events?.advertisingFailed(error, by: self)
    }

    func browsingFailed(_ error: NighError, by transport: any Transport) {
        events?.browsingFailed(error, by: self)
    }

    func advertised(as name: DisplayName, by transport: any Transport) {
        events?.advertised(as: name, by: self)
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        events?.listeningChanged(addresses.map(relabel), by: self)
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        events?.transportChanged(condition, by: self)
    }
}
