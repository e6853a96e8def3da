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
    package final class Problems {
        package fileprivate(set) var causes: [NighError.Cause] = []
    }

    package let problems = Problems()
    package let puma: Member
    package let lynx: Member
    private let network: SimulatedNetwork

    package var loop: VirtualEventLoop { network.loop }

    /// Connects the two. Lynx may go without its layer, as a peer of an earlier version does.
    package init(
        on loop: VirtualEventLoop = VirtualEventLoop(), lynxHasLayer: Bool = true,
        configure: (inout SessionConfiguration) -> Void = { _ in },
        layer: () -> Layer
    ) throws {
        let network = SimulatedNetwork(on: loop)
        let problems = problems
        func join(_ name: String, hasLayer: Bool = true) -> (SessionProbe, Layer) {
            let layer = layer()
            let probe = network.join(name, layers: hasLayer ? [layer] : [], adjust: configure)
            let accept = probe.reaction
            probe.reaction = { event, session in
                if case .problem(let error) = event { problems.causes.append(error.cause) }
                accept?(event, session)
            }
            return (probe, layer)
        }
        let (first, second) = (join("puma"), join("lynx", hasLayer: lynxHasLayer))
        try network.connect(first.0, second.0)
        self.network = network
        puma = Member(session: first.0.session, layer: first.1, faults: first.0.faults)
        lynx = Member(session: second.0.session, layer: second.1, faults: second.0.faults)
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
