import Glibc
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

    private static func page() throws -> String {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return TemporaryFolder.text(of: "/\(root)/docs/guides/across-the-internet.md")
    }

    /// The block of the page that configures the server, for these two people.
    private func configuration() throws -> String {
        let blocks = try Self.page().split(separator: "```").map(String.init)
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
        let file = folder.file(user, "user=\(user)\npassword=PASSWORD-OF-\(user.uppercased())\n")
        chmod(file, 0o600)
        return file
    }

    /// A session of a person, with what it has seen.
    private final class Member: @unchecked Sendable {  // The monitor guards what is recorded.
        let loop = ThreadEventLoop()
        let session: LowLevelSession
        let monitor = Monitor()
        private(set) var states: [PeerState] = []
        private(set) var messages: [[UInt8]] = []
        private(set) var problems: [String] = []

        init(_ name: String, _ identity: Identity, _ options: NATSOptions) {
            var configuration = SessionConfiguration(
                service: "permitted", name: DisplayName(fitting: name), role: .peer)
            configuration.security = .encrypted
            session = LowLevelSession(
                configuration, identity: identity, transports: [NATSTransport.make(options)], loop: loop)
            session.start(
                onEvent: { [self] event in
                    if case .invited(let invitation) = event { invitation.accept() }
                    monitor.change {
                        if let peer = event.stateChange?.peer { states.append(peer.state) }
                        if case .transportDown(_, let error) = event { problems.append("\(error)") }
                    }
                },
                onMessage: { [self] bytes, _ in
                    let message = bytes.withUnsafeBytes { Array($0) }
                    monitor.change { messages.append(message) }
                })
        }

        func wait(for state: PeerState) -> Bool {
            monitor.wait(within: .seconds(30)) { states.last == state }
        }

        func end() {
            let done = Monitor()
            let isDone = Guarded(false)
            session.close { done.change { isDone.withLock { $0 = true } } }
            #expect(done.wait(within: .seconds(30)) { isDone.withLock { $0 } })
            loop.shutdown()
        }
    }

    @Test(
        "with the guide's configuration two people meet, also with a second program of one of them",
        arguments: NATSServer.Version.allCases)
    func meeting(_ version: NATSServer.Version) throws {
        let server = try NATSServer(version, try configuration())
        let address = try ServerAddress(parsing: server.address)
        let first = Member(
            "Puma", puma.makeDelegate(), NATSOptions(servers: [address], credentials: credentials(of: "puma"))
        )
        let second = Member(
            "Lynx", lynx, NATSOptions(servers: [address], credentials: credentials(of: "lynx")))
        defer {
            first.end()
            second.end()
        }
        #expect(first.wait(for: .available) && second.wait(for: .available))
        second.loop.execute { second.session.invite(first.session.id) { _ in } }
        #expect(first.wait(for: .connected) && second.wait(for: .connected), "\(first.problems)")
        try second.session.trySend(Array("hello".utf8), to: first.session.id)
        #expect(first.monitor.wait(within: .seconds(30)) { first.messages == [Array("hello".utf8)] })
    }

    @Test("one user cannot listen to what is for another, or publish outside the realm")
    func separation() throws {
        let server = try NATSServer(.debian, try configuration())
        let client = try Client(of: server, credentials: credentials(of: "lynx"))
        defer { client.shutdown() }
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
