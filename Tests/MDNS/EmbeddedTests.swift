import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS

/// Runs Avahi's own stack several times on this host, connected by the loopback interface only.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct EmbeddedTests {
    private let service = ServiceName("t-" + String(UInt32.random(in: .min ... .max), radix: 36))!

    @Test func `Two services find each other and say goodbye`() throws {
        let first = Neighbour(service)
        let second = Neighbour(service)
        first.publish("First", port: 4_001, text: "a")
        first.browse()
        second.publish("Second", port: 4_002, text: "b")
        second.browse()
        let seen = try first.wait { $0.found["Second"] }
        #expect(seen.port == 4_002)
        #expect(seen.id == "b")
        #expect(seen.endpoints[0].addresses.contains { $0.bytes == [127, 0, 0, 1] })
        #expect(!seen.isOwn)
        #expect(try second.wait { $0.found["First"] }.port == 4_001)
        #expect(try first.wait { $0.found["First"] }.isOwn)
        first.publish("First", port: 4_001, text: "changed")
        _ = try second.wait {
            $0.found["First"]?.id == "changed" ? true : nil
        }
        #expect(second.losses == [], "a text changes in place")
        second.end()
        _ = try first.wait { $0.losses.contains("Second") ? true : nil }
        first.end()
    }

    @Test func `The later service takes another name`() throws {
        let first = Neighbour(service)
        first.publish("Puma", port: 4_001, text: "a")
        #expect(try first.wait { $0.name } == "Puma")
        let second = Neighbour(service)
        second.publish("Puma", port: 4_002, text: "b")
        // The second asks only for a moment whether the name is free. On a busy machine it may miss the first. Then one
        // of the two takes another name as soon as Avahi sees both.
        _ = try second.wait {
            [$0.name, first.lastName].contains("Puma #2") ? true : nil
        }
        // The third has the same `id` as the holder of the name. So it counts as that program after a restart, and gets
        // the name.
        let third = Neighbour(service)
        third.publish("Puma", port: 4_003, text: first.lastName == "Puma" ? "a" : "b")
        #expect(try third.wait { $0.name } == "Puma")
        for neighbour in [first, second, third] { neighbour.end() }
    }

    @Test func `Two services that start at once are found under two names`() throws {
        let neighbours = (0..<2).map { _ in Neighbour(service) }
        for (number, neighbour) in neighbours.enumerated() {
            neighbour.publish("Puma", port: 4_001 + UInt16(number), text: "\(number)")
        }
        let watcher = Neighbour(service)
        watcher.browse()
        // One of the two keeps the name. If both are kept from running, Avahi may take it from both: then nobody has
        // withdrawn it, and it is found for two minutes more.
        _ = try watcher.wait { watcher in
            let names = neighbours.map(\.lastName)
            let areFound = zip(names, [4_001, 4_002]).allSatisfy { name, port in
                name.flatMap { watcher.found[$0] }?.endpoints.contains { $0.port == port } == true
            }
            return areFound && names[0] != names[1] ? true : nil
        }
        for neighbour in neighbours + [watcher] { neighbour.end() }
    }

    @Test func `Repeated starts and stops leave nothing open`() throws {
        /// The number of mDNS sockets of this process.
        func sockets() -> Int {
            (0..<Int32(1_024)).count { descriptor in
                var address = sockaddr_in6()
                var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
                return withUnsafeMutablePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        getsockname(descriptor, $0, &length)
                    }
                } == 0 && UInt16(bigEndian: address.sin6_port) == MulticastSocket.port
            }
        }
        // Other tests that run at the same time may have mDNS sockets too. If these twenty leak, they leave forty
        // sockets, and each further round leaves forty more.
        var rounds = 0
        repeat {
            for number in 0..<20 {
                let neighbour = Neighbour(service)
                neighbour.publish("N\(number)", port: 4_000, text: "n")
                neighbour.browse()
                if number % 4 == 0 { _ = try neighbour.wait { $0.name } }
                neighbour.end()
            }
            rounds += 1
        } while sockets() >= 20 && rounds < 8
        #expect(sockets() < 20)
    }

    @Test func `A released service also says goodbye`() throws {
        let first = Neighbour(service)
        let second = Neighbour(service)
        first.browse()
        second.publish("Second", port: 4_002, text: "b")
        second.browse()
        _ = try first.wait { $0.found["Second"] }
        second.release()
        _ = try first.wait { $0.losses.contains("Second") ? true : nil }
        first.end()
        second.end()
    }

    @Test func `Multicast is received on loopback`() async throws {
        let loop = UVEventLoop()
        let verdict = await withCheckedContinuation { continuation in
            loop.execute {
                let holder = Holder<MulticastCheck>()
                holder.value = MulticastCheck(on: loop, interface: "lo") { verdict in
                    holder.value?.shutdown()
                    continuation.resume(returning: verdict)
                }
                holder.value?.begin()
            }
        }
        #expect(verdict == .works)
        loop.shutdown()
    }

    @Test func `A missing interface is named in the error`() throws {
        for mode in ServiceDiscovery.Mode.allCases {
            let neighbour = Neighbour(service, mode: mode, interface: "no-such-if")
            neighbour.browse()
            let error = try neighbour.wait { $0.failures.first }
            if mode == .embedded { #expect("\(error)".contains("no network interface no-such-if")) }
            neighbour.end()
        }
    }
}

/// `@unchecked Sendable`: used on one loop.
private final class Holder<Value>: @unchecked Sendable { var value: Value? }

extension DiscoveredService {
    /// The port, or nil while there are two places, of which one is about to go.
    fileprivate var port: UInt16? { endpoints.count == 1 ? endpoints[0].port : nil }

    fileprivate var id: String? {
        texts.count == 1 ? texts[0].value(of: "id").map { String(decoding: $0, as: UTF8.self) } : nil
    }
}

/// A `ServiceDiscovery` on a loop of its own.
///
/// `@unchecked Sendable`: the monitor guards what other threads read; everything else is confined to the loop.
private final class Neighbour: ServiceDiscoveryEvents, @unchecked Sendable {
    struct Seen {
        var found: [String: DiscoveredService] = [:]
        var name: String?
        var losses: [String] = []
        var failures: [NighError] = []
    }

    /// One monitor for all, so that a test that waits for one notices the reports to all others.
    private static let monitor = Monitor()
    private let loop = UVEventLoop()
    private let service: ServiceName
    private var seen = Seen()
    private var discovery: ServiceDiscovery?

    init(_ service: ServiceName, mode: ServiceDiscovery.Mode = .embedded, interface: String = "lo") {
        self.service = service
        loop.execute {
            self.discovery = ServiceDiscovery(mode: mode, interface: interface, on: self.loop, events: self)
        }
    }

    func publish(_ name: String, port: UInt16, text: String) {
        let entries = [TextEntry(key: "id", value: text)].compactMap(\.self)
        let registration = ServiceRegistration(
            type: ServiceType(tcp: service), name: DisplayName(fitting: name), port: port, text: entries,
            identityKey: "id")
        loop.execute { self.discovery?.publish(registration) }
    }

    func browse() {
        loop.execute { self.discovery?.browse(ServiceType(tcp: self.service)) }
    }

    /// Releases the discovery without shutting it down.
    func release() { loop.execute { self.discovery = nil } }

    /// Shuts the discovery down, which sends its goodbyes.
    func end() {
        loop.call {
            self.discovery?.shutdown()
            self.discovery = nil
        }
        loop.shutdown()
    }

    var losses: [String] { Self.monitor.read { seen.losses } }
    var lastName: String? { Self.monitor.read { seen.name } }

    /// Waits up to 5 min until `look` finds something in what was reported.
    func wait<Result>(for look: (Seen) -> Result?) throws -> Result {
        var result: Result?
        _ = Self.monitor.wait(within: .seconds(300)) {
            result = look(seen)
            return result != nil
        }
        let last = Self.monitor.read { seen }
        return try #require(result, "it never came: \(last)")
    }

    private func change(_ body: (inout Seen) -> Void) { Self.monitor.change { body(&seen) } }

    func serviceFoundOrChanged(_ service: DiscoveredService) {
        change { $0.found[service.key.name] = service }
    }

    func serviceLost(_ key: DiscoveredService.Key) {
        change {
            $0.found[key.name] = nil
            $0.losses.append(key.name)
        }
    }

    func published(as name: String) { change { $0.name = name } }
    func publishingFailed(_ error: NighError) { change { $0.failures.append(error) } }
    func browsingFailed(_ error: NighError) { change { $0.failures.append(error) } }
    func discoveryChanged(_ condition: DiscoveryCondition) {}
}
