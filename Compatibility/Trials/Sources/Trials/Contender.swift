import Foundation

/// One of the interfaces that are compared, connected to a second process that uses the same interface.
///
/// The second process sends every message back that has fewer than 16 bytes.
protocol Contender: Sendable {
    static var name: String { get }
    /// Begins to be the second process.
    static func answer(in service: String) async throws
    /// Connects to the second process.
    init(to process: SecondProcess) async throws

    /// Sends messages as fast as they are accepted, then one that is answered, and returns when the answer is there.
    func stream(_ count: Int, of size: Int) async throws
    /// Sends a message of 8 bytes that is answered, again and again, and returns the microseconds of each.
    func roundTrips(_ count: Int) async throws -> [Double]
}

let contenders: [any Contender.Type] = [NighContender.self, ModuleContender.self, GameKitContender.self]

/// A copy of this program that answers.
final class SecondProcess: Sendable {
    let service: String
    private let identifier: Int32

    init(_ contender: any Contender.Type) throws {
        service = "trial-\(Int.random(in: 0...99_999_999))"
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["answer", contender.name, service]
        try process.run()
        identifier = process.processIdentifier
    }

    /// It waits in a way that a gentler signal does not end.
    func end() { kill(identifier, SIGKILL) }

    /// The processor time that it has used.
    var processorSeconds: Double { Machine.processorSeconds(of: identifier) }
}

/// Runs `body` on a thread that may wait for something that is not a task.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

/// Calls `send` again while it says that too much waits.
func sendWithPatience(_ send: () throws -> Void, unless isFull: (any Error) -> Bool) throws {
    while true {
        do { return try send() } catch  where isFull(error) { usleep(200) }
    }
}

/// Microseconds that `body` takes, each time.
func microseconds(_ count: Int, _ body: () throws -> Void) rethrows -> [Double] {
    try (0..<count).map { _ in
        let start = ContinuousClock.now
        try body()
        return start.duration(to: .now) / .microseconds(1)
    }
}
