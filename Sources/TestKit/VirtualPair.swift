import NighCore
import NighMemory

/// Two connected sessions with one layer each, in virtual time, over a network that a test disturbs.
package final class VirtualPair<Layer: SessionLayer> {
    /// One of the sessions.
    package struct Member: Sendable {
        package let session: Session
        package let layer: Layer
        /// Disturbs the session's transport.
        package let faults: FaultControl
    }

    /// The problems that the two sessions have reported.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    package final class Problems: @unchecked Sendable {
        package fileprivate(set) var causes: [NighError.Cause] = []
    }

    package let problems = Problems()
    package let loop: VirtualEventLoop
    package let puma: Member
    package let lynx: Member

    /// Connects the two. Lynx goes without its layer if told so, as a peer of an earlier version does.
    package init(
        service: String, on loop: VirtualEventLoop = VirtualEventLoop(), lynxHasLayer: Bool = true,
        configure: (inout SessionConfiguration) -> Void = { _ in },
        layer: () -> Layer
    ) throws {
        let hub = MemoryHub()
        let problems = problems
        self.loop = loop
        func member(_ name: String, hasLayer: Bool, seed: UInt64) throws -> Member {
            let transport = FaultyTransport(MemoryTransport(hub: hub, address: name))
            var configuration = SessionConfiguration(
                service: ServiceName(service) ?? "pair", name: DisplayName(fitting: name))
            configuration.seed = seed
            configure(&configuration)
            let layer = layer()
            if hasLayer { configuration.layers = [layer] }
            let session = Session(
                configuration, identity: .ephemeral(seed: seed), transports: [transport], loop: loop)
            session.start(onEvent: { event in
                switch event {
                case .invited(let invitation): invitation.accept()
                case .problem(let error): problems.causes.append(error.cause)
                default: break
                }
            })
            return Member(session: session, layer: layer, faults: transport.control)
        }
        let puma = try member("puma", hasLayer: true, seed: 1)
        let lynx = try member("lynx", hasLayer: lynxHasLayer, seed: 2)
        (self.puma, self.lynx) = (puma, lynx)
        try run()
        puma.session.invite(lynx.session.id) { _ in }
        try run()
    }

    /// Lets time pass.
    package func run(_ time: Duration = .seconds(2)) throws { try loop.run(for: time) }

    /// The other session, as Puma knows it.
    package var asPumaSeesLynx: Peer { puma.session.peer(lynx.session.id) }

    /// The other session, as Lynx knows it.
    package var asLynxSeesPuma: Peer { lynx.session.peer(puma.session.id) }

    /// Closes both sessions.
    package func close() throws {
        for member in [puma, lynx] { member.session.close {} }
        try run(.seconds(10))
    }
}
