/// The device on which a program runs in a simulation. A session made by its service takes its identity, loop and
/// transports from here.
package struct SimulatedDevice: Sendable {
    /// The device of the present task; nil outside of simulations.
    @TaskLocal package static var current: SimulatedDevice?

    package let name: DisplayName
    package let loop: any SimulatedLoop
    /// Makes the transports of a session.
    package let makeTransports: @Sendable () -> [any Transport]
    /// The identity of the device's sessions of a service.
    package let identity: @Sendable (ServiceName) -> Identity
    /// The seed of the next session.
    package let nextSeed: @Sendable () -> UInt64

    package init(
        name: DisplayName, loop: any SimulatedLoop, makeTransports: @escaping @Sendable () -> [any Transport],
        identity: @escaping @Sendable (ServiceName) -> Identity, nextSeed: @escaping @Sendable () -> UInt64
    ) {
        self.name = name
        self.loop = loop
        self.makeTransports = makeTransports
        self.identity = identity
        self.nextSeed = nextSeed
    }
}
