import NighTestKit
import NighUV

@testable import NighBluetooth

/// A private bus, a loop for everyone who talks over it, and notes of what happened.
///
/// `@unchecked Sendable`: the monitor guards the notes; the daemon belongs to the test's thread.
final class BusRoom: @unchecked Sendable {
    let daemon: PrivateBus
    let loop = UVEventLoop()
    let monitor = Monitor()
    private var list: [String] = []
    /// A copy of the daemon's address that any thread may read.
    private let address: String

    init() throws {
        daemon = try PrivateBus()
        address = daemon.address
    }

    deinit { loop.shutdown() }

    var notes: [String] { monitor.read { list } }

    func note(_ text: String) { monitor.change { list.append(text) } }

    /// Waits up to 20 s; returns whether `note` was noted at least `times` times.
    func wait(for note: String, times: Int = 1) -> Bool {
        monitor.wait(within: .seconds(20)) { list.count { $0 == note } >= times }
    }

    /// Waits up to 20 s; returns whether the condition became true. It is checked whenever something is noted.
    func wait(until isTrue: @escaping () -> Bool) -> Bool {
        monitor.wait(within: .seconds(20), until: isTrue)
    }

    /// Runs `body` on the loop and waits for its result.
    @discardableResult
    func call<Result>(_ body: @escaping () -> Result) -> Result {
        loop.call(body)
    }

    /// Opens a connection to the bus. Its end is noted as `lost`.
    func connect() throws -> SystemBus {
        try call {
            Swift.Result {
                try SystemBus(on: self.loop, at: self.address) { [weak self] _ in self?.note("lost") }
            }
        }.get()
    }

    /// Calls a method and notes the outcome, with `name` before it.
    func callMethod(
        _ name: String, _ bus: SystemBus, _ method: SystemBus.Method, _ arguments: [BusArgument] = []
    ) {
        call {
            bus.call(method, arguments) { [weak self] result in
                switch result {
                case .success(let values): self?.note("\(name): \(values.map(Self.text))")
                case .failure(let fault): self?.note("\(name) failed: \(fault.name)")
                }
            }
        }
    }

    static func text(_ value: BusValue) -> String {
        switch value {
        case .boolean(let value): "\(value)"
        case .integer(let number): "\(number)"
        case .text(let text): text
        case .list(let values): "[" + values.map(text).joined(separator: " ") + "]"
        case .entries(let entries):
            "{"
                + entries.sorted { $0.key < $1.key }.map { "\($0.key)=\(text($0.value))" }.joined(
                    separator: " ")
                + "}"
        case .other: "other"
        }
    }

    /// A method of the bus itself.
    static func method(_ member: String) -> SystemBus.Method {
        SystemBus.Method(
            destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus", member: member)
    }
}
