import ChildPrograms
import NATSServers
import NighBroker
import NighCore
import NighTestKit
import Testing

@testable import NighNATS

@Suite(.serialized) struct EncryptionTests {
    /// A certificate authority, and certificates for a server.
    private final class Authority {
        let folder = TemporaryFolder()

        init() throws {
            try openssl(
                "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=Test CA", "-days", "2",
                "-keyout", path("ca.key"), "-out", path("ca.pem"))
        }

        func path(_ name: String) -> String { "\(folder.path)/\(name)" }

        /// Makes a certificate for `names`, and returns the lines of a server's configuration that use it.
        func configuration(for names: String, days: Int = 2) throws -> String {
            let name = names.filter { $0.isLetter || $0.isNumber }
            let extensions = folder.file("\(name).ext", "subjectAltName=\(names)\n")
            try openssl(
                "req", "-newkey", "ed25519", "-nodes", "-subj", "/CN=server", "-keyout", path("\(name).key"),
                "-out", path("\(name).csr"))
            try openssl(
                "x509", "-req", "-in", path("\(name).csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"),
                "-CAcreateserial", "-days", "\(days)", "-extfile", extensions, "-out", path("\(name).pem"))
            return "tls { cert_file: \"\(path("\(name).pem"))\", key_file: \"\(path("\(name).key"))\" }"
        }

        private func openssl(_ arguments: String...) throws {
            let (status, errors) = try Child("/usr/bin/openssl", arguments).end()
            guard status == 0 else { throw Child.Failure(description: "openssl: \(errors)") }
        }
    }

    private func client(_ address: String, authorities: String? = nil) throws -> Client {
        let client = try Client(startedFor: address, authorities: authorities)
        #expect(client.wait { !client.connections.isEmpty || !client.disconnections.isEmpty })
        return client
    }

    @Test(arguments: NATSServer.Version.allCases)
    func `Over TLS packets pass both ways at once, in order and complete`(_ version: NATSServer.Version)
        throws
    {
        let authority = try Authority()
        let server = try NATSServer(version, try authority.configuration(for: "IP:127.0.0.1"))
        let clients = try (0..<2).map { _ in
            try client("tls://127.0.0.1:\(server.port)", authorities: authority.path("ca.pem"))
        }
        for client in clients {
            #expect(client.monitor.read { client.disconnections.map(\.description) } == [])
        }
        let count = 2_000
        let faults = Guarded(0)
        for (index, client) in clients.enumerated() {
            var next = 0
            client.onPacket = { packet in
                let number = packet.withUnsafeBytes { $0.loadUnaligned(as: Int.self) }
                if number != next { faults.withLock { $0 += 1 } }
                next = number + 1
                if next == count { client.monitor.change {} }
            }
            #expect(client.subscribe(to: "nigh.\(index)"))
        }
        for (index, client) in clients.enumerated() {
            client.loop.execute {
                for number in 0..<count {
                    var bytes = [UInt8](repeating: 0, count: 16_384)
                    bytes.withUnsafeMutableBytes { $0.storeBytes(of: number, as: Int.self) }
                    client.connection.publish(bytes, to: "nigh.\(1 - index)", answers: nil)
                }
            }
        }
        for client in clients { #expect(client.wait(within: 60) { client.packetCount == count }) }
        #expect(faults.withLock { $0 } == 0)
        #expect(clients[0].diagnosis("tls")?.finding == "encrypted, with a certificate for 127.0.0.1")
    }

    @Test func `A server whose certificate is not good enough is refused, for a reason that is named`() throws
    {
        let authority = try Authority()
        let server = try NATSServer(.debian, try authority.configuration(for: "DNS:nats.example"))
        func cause(_ address: String, _ authorities: String?) throws -> String {
            let client = try client(address, authorities: authorities)
            let error = try #require(client.monitor.read { client.disconnections.first })
            #expect(error.advice != nil && error.peer == address)
            return error.cause.description
        }
        let address = "tls://127.0.0.1:\(server.port)"
        #expect(
            try cause(address, authority.path("ca.pem")) == "the server's certificate is not for 127.0.0.1")
        #expect(
            try cause(address, nil)
                == "the server's certificate is from an authority that is not trusted here")
        let optional = try NATSServer(
            .debian, try authority.configuration(for: "IP:127.0.0.1") + "\nallow_non_tls: true")
        #expect(
            try cause("tls://127.0.0.1:\(optional.port)", nil) == "the server does not require encryption")
        let plain = try NATSServer()
        #expect(try cause("tls://127.0.0.1:\(plain.port)", nil) == "the server offers no encryption")
    }

    @Test func `A server that wants encryption gets it, though the address does not ask for it`() throws {
        let authority = try Authority()
        let server = try NATSServer(.debian, try authority.configuration(for: "IP:127.0.0.1"))
        let client = try client(server.address, authorities: authority.path("ca.pem"))
        #expect(client.monitor.read { client.disconnections.map(\.description) } == [])
        #expect(client.diagnosis("tls")?.finding.hasPrefix("encrypted") == true)
    }
}
