import Glibc
import Synchronization
import Testing

@testable import lab

/// An air that machines with Bluetooth share (`Tests/Lab/bluetooth/air`), for as long as somebody holds on to this.
final class BluetoothAir: Sendable {
    /// The folder of the Bluetooth lab, in the checkout that these tests were built from.
    static let folder =
        "\(#filePath)".split(separator: "/").dropLast(2).reduce("") { "\($0)/\($1)" } + "/bluetooth"

    /// Where there is a controller for whoever comes: what `machine --air` takes.
    var socket: String { "\(place)/air" }
    private let place: String
    private let server: LabProcess

    init() async throws {
        place = "/tmp/nigh-air-\(String(UInt64.random(in: .min ... .max), radix: 36))"
        // Tests that are killed let go of nothing; but the input that they gave ends with them.
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

    /// Tells it a word, as `air --help` has them; returns its answer.
    @discardableResult
    func tell(_ words: String...) async throws -> String {
        let telling = try LabProcess(command: ["\(Self.folder)/air", "tell", place] + words)
        #expect(await telling.end(within: .seconds(20)) == .exited(0), "\(telling.output)")
        return telling.output
    }
}

/// A `lab peer` over Bluetooth in a machine of its own, for as long as somebody holds on to this; it invites everybody it finds.
final class AirPeer: Sendable {
    /// A change of the state of another peer, as it was told.
    struct Move {
        let from: String
        let to: String
        let cause: String
    }

    /// For how long one stays that nothing else ends.
    enum Stay {
        /// Until it has exchanged so many messages with another.
        case exchanging(Int)
        /// For so many seconds.
        case seconds(Int)
    }

    private let machine: LabProcess
    private let hasEnded = Mutex(false)

    /// Starts it.
    init(
        _ name: String, in air: BluetoothAir, _ stay: Stay, over transport: String = "bluetooth"
    ) throws {
        var command = [
            try LabProcess.program(), "peer", "--name", name, "--transport", transport, "--meet",
        ]
        switch stay {
        case .exchanging(let count): command += ["--exchange", "\(count)", "20"]
        case .seconds(let count):
            // A command in a machine has an empty input, and nobody outside can add to it.
            command = ["bash", "-c", #""$@" < <(sleep "$0"; echo quit)"#, "\(count)"] + command
        }
        machine = try LabProcess(
            command: ["\(BluetoothAir.folder)/machine", "--air", air.socket, "--"] + command)
    }

    deinit {
        guard !hasEnded.withLock({ $0 }) else { return }
        pullOut()
        _ = Spawning.wait(for: machine.process)
    }

    /// Ends its machine as it ends whose battery is taken out: nobody inside can say a word.
    func pullOut() { kill(machine.process, SIGKILL) }

    /// How it ended by itself; to be asked once.
    func end() async -> Child.Ending {
        defer { hasEnded.withLock { $0 = true } }
        return await machine.end(within: .seconds(60))
    }

    /// All that it has printed.
    var output: String { machine.output }

    /// The words of all events of that kind, in order.
    func events(_ kind: String) -> [[String]] {
        output.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
            return words.first == kind ? Array(words.dropFirst()) : nil
        }
    }

    /// How the state of the one other peer there is went.
    var moves: [Move] {
        events("state").map { Move(from: $0[1], to: $0[2], cause: $0[3...].joined(separator: " ")) }
    }

    /// The states that it has been in since it was first seen.
    var states: [String] { moves.map(\.to) }

    /// The numbers of the messages that came, in the order in which they came.
    var received: [Int] { events("received").compactMap { Int($0[2]) } }
}
