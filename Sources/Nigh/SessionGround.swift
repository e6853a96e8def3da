import NighLoop
import NighWeb

/// The loop, transports and identity that a session gets from its machine or from a simulation.
struct SessionGround {
    let name: DisplayName
    let transports: [any Transport]
    let identity: IdentityUse
    let trust: TrustStore
    let loop: any EventLoop
    /// Ends the loop after the session, if it was made for it.
    let loopOwner: OwnLoop?
    /// The seed of the session; nil draws one.
    let seed: UInt64?

    /// Takes those of this machine.
    init(
        _ service: ServiceName, name: String?, transports: String?, _ settings: SessionSettings
    ) throws(NighError) {
        self.name = if let name { DisplayName(fitting: name) } else { try DisplayName.ofThisUser() }
        let registry = TransportRegistry.standard
        self.transports = try PluginCatalog(files: settings.plugins).makeAll(
            transports ?? registry.reachingOtherPrograms, extending: registry)
        if let page = settings.page {
            for case let web as WebTransport in self.transports { web.page = page }
        }
        (identity, trust) = try settings.identity.begin(for: service)
        let loop = try UVEventLoop.make()
        self.loop = loop
        loopOwner = OwnLoop(loop)
        seed = nil
    }

    /// Takes those of a simulated device.
    init(_ service: ServiceName, name: String?, _ device: SimulatedDevice) {
        self.name = if let name { DisplayName(fitting: name) } else { device.name }
        transports = device.makeTransports()
        identity = .alone(device.identity(service))
        trust = .ephemeral()
        loop = device.loop
        loopOwner = nil
        seed = device.nextSeed()
    }
}

/// Ends the loop that was made for a session after the session. The first of its layers, so that it is the last one
/// that ends.
final class OwnLoop: SessionLayer {
    private let loop: UVEventLoop

    init(_ loop: UVEventLoop) { self.loop = loop }

    /// From its own thread the loop does not wait for its end.
    func sessionDidClose() { end() }

    func end() { loop.shutdown() }
}
