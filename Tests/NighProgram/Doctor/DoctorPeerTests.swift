import Foundation
import NighLoop
import NighTestKit
import Synchronization
import Testing

@testable import nigh

/// Tests `nigh doctor --peer`, with a session of this process as the peer.
@Suite(.callsPrograms) struct DoctorPeerTests {
    private let user = NighUser()

    private func checks(_ call: NighCall) throws -> [String: [String: Any]] {
        let all = try #require(try call.object()["checks"] as? [[String: Any]])
        return Dictionary(
            all.map { ($0["id"] as? String ?? "", $0) }, uniquingKeysWith: { first, _ in first })
    }

    private func doctor(_ arguments: String...) throws -> NighCall {
        try user.run(["doctor", "--json", "-t", "tcp:interface=lo,mdns=off"] + arguments)
    }

    private static let stages = [
        "peer.resolve", "peer.address", "peer.connect", "peer.tls", "peer.hello", "peer.version", "peer.ping",
        "peer.packets", "peer.path",
    ]

    @Test("An address is checked through every stage, and the session there does not notice")
    func address() async throws {
        let host = try await ListeningSession()
        let call = try doctor("--peer", host.address, "-s", host.service)
        #expect(call.status == 0, "\(call)")
        try call.expectSchema("doctor")
        let checks = try checks(call)
        for stage in Self.stages { #expect(checks[stage]?["verdict"] as? String == "pass", "\(stage)") }
        let path = try #require(try call.object()["path"] as? [String: Any])
        #expect(path["peer"] as? String == "\(host.session.id)")
        #expect(path["address"] as? String == host.address)
        await host.close()
        #expect(
            !host.events.contains { event in
                ["connecting", "connected", "invited"].contains { event.hasPrefix($0 + "(") }
            },
            "\(host.events)")
    }

    @Test("A peer is found by name, and each of its addresses is tried")
    func name() async throws {
        let host = try await ListeningSession(transport: "tcp:interface=lo,mdns=embedded")
        let call = try user.run(
            "doctor", "--json", "-t", "tcp:interface=lo,mdns=embedded", "--peer", "Puma", "-s", host.service)
        #expect(call.status == 0, "\(call)")
        #expect(try checks(call)["peer.found"]?["verdict"] as? String == "pass")
        #expect(try call.object()["path"] is [String: Any])
        await host.close()
    }

    @Test("Another service is named, with the option that selects it")
    func anotherService() async throws {
        let host = try await ListeningSession()
        let call = try doctor("--peer", host.address)
        #expect(call.status == 1)
        let checks = try checks(call)
        #expect(checks["peer.tls"]?["verdict"] as? String == "pass")
        #expect(checks["peer.hello"]?["advice"] as? String == "`--service \(host.service)`")
        #expect(try call.object()["path"] is NSNull)
        await host.close()
    }

    @Test("A peer that accepts only paired devices is a warning, not a failure")
    func pairedOnly() async throws {
        let host = try await ListeningSession(security: .paired)
        let call = try doctor("--peer", host.address, "-s", host.service)
        #expect(call.status == 0, "\(call)")
        let warnings = try checks(call).values.filter { $0["verdict"] as? String == "warn" }
        #expect(warnings.contains { ($0["finding"] as? String)?.contains("paired devices only") == true })
        await host.close()
    }

    @Test("Without encryption the advice names the option, and with it a warning says that all is readable")
    func plaintext() async throws {
        let host = try await ListeningSession(security: .none)
        let call = try doctor("--peer", host.address, "-s", host.service)
        #expect(call.status == 1)
        #expect(try checks(call)["peer.tls"]?["advice"] as? String == "`--security none`", "\(call)")
        let plain = try doctor("--peer", host.address, "-s", host.service, "--security", "none")
        #expect(plain.status == 0)
        #expect(try checks(plain)["peer.tls"]?["verdict"] as? String == "warn")
        await host.close()
    }

    @Test("If nobody listens, or another kind of program does, the stage that fails is named")
    func strangers() async throws {
        let closed = try withClosedPort { try doctor("--peer", "tcp://127.0.0.1:\($0)") }
        #expect(closed.status == 1)
        #expect(try checks(closed)["peer.address"]?["verdict"] as? String == "fail")
        #expect(try checks(closed)["peer.connect"]?["verdict"] as? String == "fail")

        let listener = try PlainListener()
        let child = try user.start(
            "doctor", "--json", "-t", "tcp:interface=lo,mdns=off", "--peer",
            "tcp://127.0.0.1:\(listener.port)")
        listener.answer("HTTP/1.1 400 Bad Request\r\n\r\n")
        let call = try NighCall(finishing: child)
        #expect(call.status == 1)
        let tls = try #require(try checks(call)["peer.tls"])
        #expect(tls["verdict"] as? String == "fail")
        #expect((tls["advice"] as? String)?.contains("another") == true, "\(tls)")
    }

    @Test("A name that nobody has, and an address of another transport, are reported")
    func nobody() throws {
        let call = try doctor("--peer", "Nobody", "--timeout", "100ms")
        #expect(call.status == 1)
        #expect(try checks(call)["peer.found"]?["verdict"] as? String == "fail")
        let other = try doctor("--peer", "memory://table-1")
        #expect(other.status == 1)
        #expect(
            try checks(other)["peer.resolve"]?["advice"] as? String
                == "name its transport: --transport memory")
    }
}

/// A session that listens on the loopback interface, and its events.
private final class ListeningSession: Sendable {
    /// The session's events so far, and its address.
    fileprivate struct State {
        var events: [String] = []
        var address: String?
        var isVisible: Bool
        var waiting: CheckedContinuation<String, Never>?
    }

    let session: Session
    let service: String
    let address: String
    private let loop: UVEventLoop
    private let state: State.Shared

    var events: [String] { state.value.withLock { $0.events } }

    /// Starts the session; waits until it listens and, if its transport uses mDNS, is advertised.
    init(
        transport: String = "tcp:interface=lo,mdns=off", security: SessionSecurity = .encrypted
    ) async throws {
        let service = try #require(ServiceName("d\(UInt32.random(in: .min ... .max))"))
        var configuration = SessionConfiguration(
            service: service, name: DisplayName(fitting: "Puma"), role: .server)
        configuration.security = security
        let loop = try UVEventLoop.make()
        let session = Session(
            configuration, identity: .ephemeral(),
            transports: try TransportRegistry.standard.makeAll(transport), loop: loop)
        let state = State.Shared(isVisible: transport.contains("mdns=off"))
        address = await withCheckedContinuation { continuation in
            state.value.withLock { $0.waiting = continuation }
            session.start(onEvent: { state.handle($0) }, onMessage: { _, _ in })
        }
        self.service = service.description
        self.loop = loop
        self.session = session
        self.state = state
    }

    func close() async {
        await session.close()
        loop.shutdown()
    }
}

extension ListeningSession.State {
    fileprivate final class Shared: Sendable {
        let value: Mutex<ListeningSession.State>

        init(isVisible: Bool) { value = Mutex(ListeningSession.State(isVisible: isVisible)) }

        func handle(_ event: SessionEvent) {
            value.withLock { state in
                state.events.append("\(event)")
                if case .listening(_, let addresses) = event, let first = addresses.first {
                    state.address = "\(first)"
                }
                if case .advertised = event { state.isVisible = true }
                guard state.isVisible, let address = state.address, let waiting = state.waiting else {
                    return
                }
                state.waiting = nil
                waiting.resume(returning: address)
            }
        }
    }
}
