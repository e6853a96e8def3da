import NATSServers
import NighBroker
import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import NighNATS

/// The transport over real servers.
@Suite struct TransportTests {
    /// A realm of its own on a server, so that rigs do not see each other.
    private final class Realm: Sendable {
        private static let next = Guarded(0)
        let name: String
        private let server: NATSServer
        private let mute: Client

        init(on server: NATSServer) throws {
            self.server = server
            let number = Self.next.withLock { number in
                number += 1
                return number
            }
            name = "t\(number)"
            mute = try Client(of: server)
            // Somebody who subscribes there and never answers.
            guard mute.subscribe(to: "\(name).1.to.mute.mute.conformance") else {
                throw NighError(.starting, .timedOut)
            }
        }

        deinit { mute.shutdown() }

        func makeTransport() -> any Transport {
            guard let address = try? ServerAddress(parsing: server.address) else {
                fatalError(server.address)
            }
            return NATSTransport.make(NATSOptions(servers: [address], realm: name))
        }
    }

    private func rig(on server: NATSServer) throws -> TransportRig {
        let realm = try Realm(on: server)
        var rig = TransportRig(
            "nats", refusedAddress: TransportAddress(scheme: "nats", value: "nobody.nobody.conformance"),
            silentAddress: TransportAddress(scheme: "nats", value: "mute.mute.conformance"),
            makeLoop: { ThreadEventLoop() }, stopLoop: { ($0 as? ThreadEventLoop)?.shutdown() },
            makeTransport: { realm.makeTransport() })
        rig.quietTime = .milliseconds(60)
        return rig
    }

    @Test(arguments: NATSServer.Version.allCases) func `the transport keeps to the contract`(
        _ version: NATSServer.Version
    ) throws {
        let server = try NATSServer(version)
        defer { try? server.kill() }
        let report = checkTransportConformance { try rig(on: server) }
        #expect(report.isPassed, "\(report)")
    }

    @Test func `it keeps to the contract where a server takes packets of 4 KiB`() throws {
        let server = try NATSServer(.debian, "max_payload: 4096")
        defer { try? server.kill() }
        let report = checkTransportConformance { try rig(on: server) }
        #expect(report.isPassed, "\(report)")
    }

    @Test(arguments: NATSServer.Version.allCases) func `it carries sessions`(_ version: NATSServer.Version)
        throws
    {
        let server = try NATSServer(version)
        defer { try? server.kill() }
        let report = checkSessionConformance { try rig(on: server) }
        #expect(report.isPassed, "\(report)")
    }
}
