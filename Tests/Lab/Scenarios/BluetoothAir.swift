import Glibc
import Synchronization
import Testing

@testable import lab

/// An air that several machines with Bluetooth share (`Tests/Lab/bluetooth/air`). It ends with the last reference.
final class BluetoothAir: Sendable {
    /// The folder of the Bluetooth lab, in the checkout from which these tests were built.
    static let folder =
        "\(#filePath)".split(separator: "/").dropLast(2).reduce("") { "\($0)/\($1)" } + "/bluetooth"

    /// The socket that has a controller for every machine that connects: the argument of `machine --air`.
    var socket: String { "\(place)/air" }
    private let place: String
    private let server: LabProcess

    init() async throws {
        place = "/tmp/nigh-air-\(String(UInt64.random(in: .min ... .max), radix: 36))"
        // Tests that are killed cannot end the server. But the input that they gave it ends with them.
        let server = try LabProcess(command: [
            "sh", "-c", #""$@" & read line; kill $!"#, "sh", "\(Self.folder)/air", "serve", place,
        ])
        self.server = server
        try await until("there is an air") { server.output.contains("ready") }
    }

    deinit {
        kill(-server.process, SIGTERM)
        _ = Spawning.wait(for: server.process)
    }

    /// Sends a command, as `air --help` lists them; returns the answer.
    @discardableResult
    func send(_ words: String...) async throws -> String {
        let telling = try LabProcess(command: ["\(Self.folder)/air", "tell", place] + words)
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
        static let untilTheTestEnds = Stay.seconds(AirPeer.timeLimit - 10)
    }

    /// The number of seconds after which its machine ends it. The machine counts by the clock, but tests wait by
    /// `LoadAdjustedClock`. So this is far longer than any of them takes when the processors are idle.
    private static let timeLimit = 480

    private let machine: LabProcess
    private let hasEnded = Mutex(false)

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
            command += ["--exchange", "\(count)", "20", "--grace", "90"]
        case .seconds(let count):
            // A command in a machine has an empty input, and nobody outside can write to it.
            command = ["bash", "-c", #""$@" < <(sleep "$0"; echo quit)"#, "\(count)"] + command
        }
        machine = try LabProcess(
            command: [
                "\(BluetoothAir.folder)/machine", "--time-limit", "\(Self.timeLimit)", "--air", air.socket,
                "--",
            ] + command)
    }

    deinit {
        guard !hasEnded.withLock({ $0 }) else { return }
        pullOut()
        _ = Spawning.wait(for: machine.process)
    }

    /// Ends its machine as if its power were cut: no program inside can send anything.
    func pullOut() { kill(machine.process, SIGKILL) }

    /// Waits until it ends by itself; returns how. Must be called only once.
    func end() async -> Child.Ending {
        defer { hasEnded.withLock { $0 = true } }
        return await machine.end(within: .seconds(180))
    }

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

    /// The changes of the state of the only other peer.
    var moves: [Move] {
        events("state").map { Move(from: $0[1], to: $0[2], cause: $0[3...].joined(separator: " ")) }
    }

    /// The states of that peer since it was first seen.
    var states: [String] { moves.map(\.to) }

    /// The numbers of the received messages, in the order of arrival.
    var received: [Int] { events("received").compactMap { Int($0[2]) } }
}
