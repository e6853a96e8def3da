import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite("Layers of a session") struct SessionLayerTests {
    private let network = SimulatedNetwork()

    /// The calls, in order.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Calls: @unchecked Sendable {
        var all: [String] = []
        func take() -> [String] {
            defer { all = [] }
            return all
        }
    }

    private final class Layer: SessionLayer {
        let name: String
        let calls: Calls
        let answersInvitations: Bool
        let transports: [any Transport]

        init(_ name: String, _ calls: Calls, answering: Bool = false, transports: [any Transport] = []) {
            self.name = name
            self.calls = calls
            answersInvitations = answering
            self.transports = transports
        }

        private func note(_ what: String) { calls.all.append("\(name): \(what)") }

        func attach(to session: Session) { note("attached to \(session.configuration.name)") }
        func handle(_ event: SessionEvent) {
            if let peer = event.stateChange?.peer { note("\(peer.state)") }
            if case .invited = event { note("invited") }
            if case .closed = event { note("closed") }
        }
        func answers(_ invitation: Invitation) -> Bool {
            note("asked")
            return answersInvitations
        }
        func sessionWillClose() { note("closing") }
        func sessionDidClose() { note("over") }
    }

    @Test
    func `hear of events in the order of the list, before the program, and of the end in reverse`() throws {
        let calls = Calls()
        let puma = network.join("puma") { $0.layers = [Layer("a", calls), Layer("b", calls)] }
        #expect(calls.take() == ["a: attached to puma", "b: attached to puma"])
        puma.reaction = { event, session in
            if case .invited(let invitation) = event { invitation.accept() }
            if let peer = event.stateChange?.peer { calls.all.append("program: \(peer.state)") }
            if case .closed = event { calls.all.append("program: closed") }
        }
        let lynx = network.join("lynx")
        try network.run(for: .seconds(1))
        #expect(calls.take() == ["a: available", "b: available", "program: available"])
        try network.invite(puma, from: lynx)
        #expect(
            calls.take() == [
                "a: asked", "b: asked", "a: invited", "b: invited",
                "a: connecting", "b: connecting", "program: connecting",
                "a: connected", "b: connected", "program: connected",
            ])
        puma.session.close {}
        puma.session.close {}
        try network.run(for: .seconds(5))
        let ending = calls.take()
        #expect(ending.prefix(2) == ["b: closing", "a: closing"])
        #expect(ending.suffix(3) == ["b: over", "a: over", "program: closed"])
        #expect(ending.count { $0.hasSuffix("closing") || $0.hasSuffix("over") } == 4)
    }

    @Test func `answer an invitation of which then nobody else hears`() throws {
        let calls = Calls()
        let puma = network.join("puma") {
            $0.layers = [Layer("a", calls), Layer("b", calls, answering: true), Layer("c", calls)]
        }
        let lynx = network.join("lynx")
        try network.run(for: .seconds(1))
        _ = calls.take()
        try network.invite(puma, from: lynx)
        #expect(calls.take() == ["a: asked", "b: asked"])
        #expect(puma.events.allSatisfy { if case .invited = $0 { false } else { true } })
        #expect(lynx.state(of: puma.id) == .connecting)
    }

    @Test func `bring transports over which the session is reached`() throws {
        let other = RelabelledTransport(
            MemoryTransport(hub: network.hub(), address: "brought"), scheme: "brought", priority: 5)
        let puma = network.join("puma") {
            $0.layers = [Layer("a", Calls(), transports: [other])]
        }
        try network.run(for: .seconds(1))
        let schemes = puma.events.compactMap {
            if case .listening(let scheme, _) = $0 { scheme } else { nil }
        }
        #expect(schemes == ["memory", "brought"])
    }

    @Test
    func `hear of the end of a session that nobody holds any more, and of nothing after a crash`() throws {
        let loop = VirtualEventLoop()
        let calls = Calls()
        func start() -> Session {
            var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "puma"))
            configuration.layers = [Layer("a", calls)]
            let session = Session(
                configuration, identity: .ephemeral(),
                transports: [MemoryTransport(hub: MemoryHub(), address: "puma")], loop: loop)
            session.start()
            return session
        }
        _ = start()
        try loop.run(for: .seconds(5))
        #expect(calls.take() == ["a: attached to puma", "a: closing", "a: over"])
        let session = start()
        session.crash()
        session.close {}
        try loop.run(for: .seconds(5))
        #expect(calls.take() == ["a: attached to puma"])
    }
}
