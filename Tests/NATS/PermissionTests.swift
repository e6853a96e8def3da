import NATSServers
import NighBroker
import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import NighNATS

/// Plays the configuration for a server in docs/guides/across-the-internet.md, without its certificate.
@Suite struct PermissionTests {
    private let puma = Identity.ephemeral(seed: 1)
    private let lynx = Identity.ephemeral(seed: 2)
    private let folder = TemporaryFolder()
    private let loops = [ThreadEventLoop(), ThreadEventLoop()]

    /// The block of the page that configures the server, for these two people.
    private func configuration() throws -> String {
        let page = RepositoryFile.text(of: "docs/guides/across-the-internet.md")
        let blocks = page.split(separator: "```").map(String.init)
        let block = try #require(blocks.first { $0.contains("authorization {") })
        let tls = try #require(
            block.split(separator: "tls {").last.flatMap { $0.split(separator: "}").first })
        var text = block.split(separator: "\n").filter { !$0.hasPrefix("port:") }.joined(separator: "\n")
        text = text.replacing("tls {\(tls)}", with: "")
        for (name, identity) in [("PUMA", puma), ("LYNX", lynx)] {
            text = text.replacing("PEERID-OF-\(name)", with: "\(identity.peerID)")
        }
        return text
    }

    private func credentials(of user: String) -> String {
        folder.file(user, "user=\(user)\npassword=PASSWORD-OF-\(user.uppercased())\n")
    }

    /// Starts the session of a person.
    private func member(
        _ user: String, _ identity: Identity, at server: NATSServer, on loop: ThreadEventLoop
    ) throws -> SessionProbe {
        let transport = FaultyTransport(
            NATSTransport.make(
                NATSOptions(
                    servers: [try ServerAddress(parsing: server.address)], credentials: credentials(of: user))
            ))
        var configuration = SessionConfiguration(service: "permitted", name: DisplayName(fitting: user))
        configuration.security = .encrypted
        let session = Session(configuration, identity: identity, transports: [transport], loop: loop)
        let probe = SessionProbe(number: 1, session: session, faults: transport.control)
        probe.start(reading: .handler, accepting: true)
        return probe
    }

    @Test(arguments: NATSServer.Version.allCases)
    func `with the guide's configuration two people meet, also with a second program of one of them`(
        _ version: NATSServer.Version
    ) throws {
        let server = try NATSServer(version, try configuration())
        let first = try member("puma", puma.makeDelegate(), at: server, on: loops[0])
        let second = try member("lynx", lynx, at: server, on: loops[1])
        func wait(for state: PeerState) -> Bool {
            first.wait { $0.state(of: second.id) == state } && second.wait { $0.state(of: first.id) == state }
        }
        #expect(wait(for: .available))
        second.session.invite(first.id) { _ in }
        #expect(wait(for: .connected), "\(first.events)")
        try second.session.trySend(Array("hello".utf8), to: first.id)
        #expect(first.wait { $0.texts == ["hello"] })
        for (probe, loop) in zip([first, second], loops) {
            probe.session.close {}
            let isClosed = probe.wait { $0.events.contains { if case .closed = $0 { true } else { false } } }
            #expect(isClosed)
            loop.shutdown()
        }
    }

    @Test func `one user cannot listen to what is for another, or publish outside the realm`() throws {
        let server = try NATSServer(.debian, try configuration())
        let client = try Client(of: server, credentials: credentials(of: "lynx"))
        let forbidden = [
            "nigh.1.to.\(puma.peerID).>", "nigh.1.at.\(puma.peerID).>", "nigh.1.at.>", "nigh.>", ">",
        ]
        for subject in forbidden { client.onLoop { client.connection.subscribe(to: subject) } }
        client.publish("x", to: "other.1.permitted.here")
        #expect(client.wait { client.failures.count == forbidden.count + 1 }, "\(client.failures)")
        client.publish("x", to: "nigh.1.permitted.here")
        #expect(client.subscribe(to: "nigh.1.to.\(lynx.peerID).>"))
        #expect(client.monitor.read { client.failures.count } == forbidden.count + 1)
    }
}
