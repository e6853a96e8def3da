import Glibc
import Testing

@testable import lab

/// An air that several machines with Bluetooth share (`Tests/Lab/bluetooth/air`). It ends with the last reference.
final class BluetoothAir: Sendable {
    /// The socket that has a controller for every machine that connects: the argument of `machine --air`.
    var socket: String { "\(place)/air" }
    private let place: String
    private let server: LabProcess

    init() async throws {
        place = "/tmp/nigh-air-\(String(UInt64.random(in: .min ... .max), radix: 36))"
        // Tests that are killed cannot end the server. But the input that they gave it ends with them.
        let server = try LabProcess(command: [
            "sh", "-c", #""$@" & read line; kill $!"#, "sh", "\(LabProcess.bluetooth)/air", "serve", place,
        ])
        self.server = server
        try await until("there is an air") { server.output.contains("ready") }
    }

    deinit { kill(-server.process, SIGTERM) }

    /// Sends a command, as `air --help` lists them; returns the answer.
    @discardableResult
    func send(_ words: String...) async throws -> String {
        let telling = try LabProcess(command: ["\(LabProcess.bluetooth)/air", "tell", place] + words)
        #expect(await telling.end(within: .seconds(20)) == .exited(0), "\(telling.output)")
        return telling.output
    }
}

/// A `lab peer` over Bluetooth in a machine of its own. It invites every peer it finds, and ends with the last
/// reference.
final class AirPeer: Sendable {
    /// A change of another peer's state, as it was reported.
    struct Move {
        let from: String
        let to: String
        let cause: String
    }

    /// How long a peer stays if nothing else ends it.
    enum Stay {
        /// Until it has exchanged that many messages with another peer.
        case exchanging(Int)
        /// For that many seconds.
        case seconds(Int)

        /// Until the last reference to it is gone, at the end of its test. Its machine could not run much longer.
        static let untilTheTestEnds = Stay.seconds(LabProcess.machineTimeLimit - 10)
    }

    private let machine: LabProcess

    /// Starts the machine and the peer in it.
    init(
        _ name: String, in air: BluetoothAir, _ stay: Stay, over transport: String = "bluetooth"
    ) throws {
        var command = [
            try LabProcess.program(), "peer", "--name", name, "--transport", transport, "--meet",
        ]
        switch stay {
        case .exchanging(let count):
            // When the processors are busy, an emulated controller may need longer for one call than the usual grace
            // period lasts. These tests ask what happens to the messages, not how soon a call is answered.
            command += ["--exchange", "\(count)", "--grace", "90"]
        case .seconds(let count):
            // A command in a machine has an empty input, and nobody outside can write to it.
            command = ["bash", "-c", #""$@" < <(sleep "$0"; echo quit)"#, "\(count)"] + command
        }
        machine = try LabProcess.machine("--air", air.socket, running: command)
    }

    /// Ends its machine as if its power were cut: no program inside can send anything.
    func pullOut() { kill(machine.process, SIGKILL) }

    /// Waits until it ends by itself; returns how. Must be called only once.
    func end() async -> Child.Ending { await machine.end(within: .seconds(180)) }

    /// Everything that it has printed.
    var output: String { machine.output }

    /// The words of all events of that kind, in order. A line whose end has not come yet is left out.
    func events(_ kind: String) -> [[String]] {
        let output = output
        let end = output.lastIndex(of: "\n") ?? output.startIndex
        return output[..<end].split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
            return words.first == kind ? Array(words.dropFirst()) : nil
        }
    }

    /// The changes of the state of the only other peer since it was first seen.
    var moves: [Move] {
        events("state").map { Move(from: $0[1], to: $0[2], cause: $0[3...].joined(separator: " ")) }
    }

    var states: [String] { moves.map(\.to) }

    /// The reason for the first change to a state.
    func cause(of state: String) -> String { moves.first { $0.to == state }?.cause ?? "nothing" }

    /// The numbers of the received messages, in the order of arrival.
    var received: [Int] { events("received").compactMap { Int($0[2]) } }

    /// Whether there was one conversation, which ended, however often its link was replaced. Nigh promises that for
    /// every unreliable wire, and an emulated one on a busy machine may be unreliable. The last link may be lost before
    /// the other side's goodbye has arrived.
    static func isOneConversation(_ states: [String]) -> Bool {
        let beginning = ["available", "connecting", "connected"]
        guard states.starts(with: beginning) else { return false }
        var rest = states.dropFirst(beginning.count)
        while rest.starts(with: ["reconnecting", "connected"]) { rest = rest.dropFirst(2) }
        if rest.first == "reconnecting" { rest = rest.dropFirst() }
        return rest.first == "disconnected" && !rest.contains("connecting")
    }
}
