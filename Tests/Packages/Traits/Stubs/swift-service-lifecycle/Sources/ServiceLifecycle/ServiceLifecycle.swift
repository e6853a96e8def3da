import Logging

/// As swift-service-lifecycle declares it.
public protocol Service: Sendable {
    /// Runs until the service has ended.
    func run() async throws
}

/// A signal of the system, of which the imitation takes none.
public struct UnixSignal: Hashable, Sendable {
    /// The signal that asks a program to end.
    public static let sigterm = UnixSignal()
}

/// Runs its services until it is shut down.
public actor ServiceGroup {
    @TaskLocal fileprivate static var shutdown: AsyncStream<Never>?
    private let services: [any Service]
    private let shutdown = AsyncStream<Never>.makeStream()

    /// Makes a group.
    public init(services: [any Service], gracefulShutdownSignals: [UnixSignal] = [], logger: Logger) {
        self.services = services
    }

    /// Runs the services until each has returned.
    public func run() async throws {
        try await Self.$shutdown.withValue(shutdown.stream) {
            try await withThrowingTaskGroup { group in
                for service in services { group.addTask { try await service.run() } }
                try await group.waitForAll()
            }
        }
    }

    /// Asks the services to end.
    public func triggerGracefulShutdown() { shutdown.continuation.finish() }
}

/// Runs `operation`, and cancels it when the group of its service is shut down.
public func cancelWhenGracefulShutdown<T: Sendable>(
    _ operation: @Sendable @escaping () async throws -> T
) async rethrows -> T {
    guard let shutdown = ServiceGroup.shutdown else { return try await operation() }
    return try await withThrowingTaskGroup(of: T?.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            for await _ in shutdown {}
            return nil
        }
        var result: T?
        while result == nil, let next = try await group.next() {
            result = next
            group.cancelAll()
        }
        guard let result else { fatalError("the operation has no result") }
        return result
    }
}
