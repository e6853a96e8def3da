import CAvahi
import NighCore
import NighTestKit
import Synchronization
import Testing

@testable import NighMDNS

/// Tests the client of avahi-daemon over a substitute for its library, whose calls fail.
@Suite(.serialized) struct AvahiDaemonThreadTests {
    /// The reports of the client. `@unchecked Sendable`: guarded by the monitor.
    private final class Witness: @unchecked Sendable {
        let monitor = Monitor()
        var events: [String] = []
        var answered: UInt64 = 0

        func note(_ event: AvahiDaemonThread.Event) {
            monitor.change {
                switch event {
                case .answered(let number): answered = number
                case .up: events.append("up")
                case .down(let error): events.append("down: \(error.cause)")
                case .watchFailed(_, let error): events.append("watch failed: \(error.cause)")
                case .publishingFailed(_, let error): events.append("publishing failed: \(error.cause)")
                case .changed, .published, .collided: events.append("other")
                }
            }
        }
    }

    /// The error of each call that comes. C functions have no context to keep it in.
    private static let code = Mutex<Int32>(0)

    /// A client that is connected at once, and whose calls all fail.
    private static var library: CAvahiClientFunctions {
        var library = CAvahiClientFunctions()
        library.client_new = { _, _, callback, context, _ in
            let client = OpaquePointer(bitPattern: 64)
            callback?(client, AVAHI_CLIENT_S_RUNNING, context)
            return client
        }
        library.client_free = { _ in }
        library.client_errno = { _ in AvahiDaemonThreadTests.code.withLock { $0 } }
        library.client_get_host_name_fqdn = { _ in AvahiDaemonThreadTests.host }
        library.client_get_version_string = { _ in nil }
        library.record_browser_new = { _, _, _, _, _, _, _, _, _ in nil }
        library.entry_group_new = { _, _, _ in nil }
        library.strerror = { _ in nil }
        return library
    }

    private nonisolated(unsafe) static let host: UnsafePointer<CChar> = {
        let text = "own.local".utf8CString
        let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: text.count)
        for (index, character) in text.enumerated() { bytes[index] = character }
        return UnsafePointer(bytes)
    }()

    private static let calls: [@Sendable (AvahiDaemonThread) -> Void] = [
        { $0.watch(Question(name: DomainName(literal: "_greet._tcp.local"), type: .pointer), as: 1) },
        {
            let name = DomainName(literal: "Puma._greet._tcp.local")
            $0.publish(
                Publication(
                    type: DomainName(literal: "_greet._tcp.local"), instance: name,
                    service: ServiceRecord(port: 1, host: DomainName(literal: "own.local")),
                    text: TextRecord(entries: [])), as: 1)
        },
    ]

    private func events(
        ofCallsThatFailWith code: Int32, _ call: @escaping @Sendable (AvahiDaemonThread) -> Void
    ) throws -> [String] {
        Self.code.withLock { $0 = code }
        let witness = Witness()
        let thread = try AvahiDaemonThread(interface: nil, library: Self.library) { witness.note($0) }
        defer { thread.end() }
        thread.perform({ $0.connect() }, number: 1)
        thread.perform(call, number: 2)
        #expect(witness.monitor.wait(within: .seconds(20)) { witness.answered == 2 })
        // It connects anew only a quarter of a second later.
        return witness.monitor.change { Array(witness.events.prefix(2)) }
    }

    @Test(arguments: [AVAHI_ERR_DBUS_ERROR, AVAHI_ERR_DISCONNECTED, AVAHI_ERR_NO_DAEMON])
    func `A call that does not reach the daemon says that the daemon is gone, and not that the call failed`(
        _ code: Int
    ) throws {
        for call in Self.calls {
            #expect(
                try events(ofCallsThatFailWith: Int32(code), call) == [
                    "up", "down: avahi-daemon is not running",
                ])
        }
    }

    @Test func `A call that the daemon refuses has failed alone`() throws {
        let reason = "avahi-daemon has reached its limit of objects for this program"
        #expect(
            try Self.calls.map { try events(ofCallsThatFailWith: Int32(AVAHI_ERR_TOO_MANY_OBJECTS), $0) } == [
                ["up", "watch failed: \(reason)"], ["up", "publishing failed: \(reason)"],
            ])
    }
}
