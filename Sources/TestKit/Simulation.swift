import NighCore
import Synchronization

/// Devices in virtual time, on which programs written for `import Nigh` run unchanged.
///
/// Each device runs programs in tasks on one virtual loop. The sessions that they make by their service find each other
/// over a simulated network, whatever transports they name, and have temporary identities. A second passes in some
/// milliseconds, and the same seed gives the same run:
///
///     let simulation = Simulation()
///     let puma = simulation.start(on: "Puma") { try await play() }
///     simulation.start(on: "Lynx") { try await play() }
///     try simulation.run(for: .seconds(10))
///     simulation.takeOffline("Puma")
///     try simulation.run(for: .seconds(60))
///     let score = try simulation.result(of: puma)
///
/// A program runs in virtual time as far as it keeps to its task: with `async let` and task groups, with
/// `session.clock` in place of `Task.sleep`, with actors that have no executor of their own. Other parts run in real
/// time, and then a run is not the same each time: `Task { }` and `Task.detached`, the main actor, files, other clocks.
public final class Simulation {
    /// The network of the devices. Sessions that a test makes itself may join it.
    public let network: SimulatedNetwork
    private let devices: SimulatedDevices

    /// The loop on which everything runs.
    public var loop: VirtualEventLoop { network.loop }

    /// Creates a simulation without devices.
    ///
    /// - Parameters:
    ///   - seed: decides everything that is random.
    ///   - workLimit: the number of pieces of work that one call of `run` may do.
    public init(seed: UInt64 = 1, workLimit: Int = 2_000_000) {
        network = SimulatedNetwork(seed: seed, on: VirtualEventLoop(workLimit: workLimit))
        devices = SimulatedDevices(seed: seed)
    }

    /// Starts a program on a device, which is named after what its sessions call themselves by default. The program
    /// runs as soon as the simulation does.
    @discardableResult
    public func start<Result: Sendable>(
        on device: String, _ program: @escaping @Sendable () async throws -> Result
    ) -> Task<Result, any Error> {
        let (network, loop, devices) = (network, loop, devices)
        let simulated = SimulatedDevice(
            name: DisplayName(fitting: device), loop: loop,
            makeTransports: { devices.addHost(of: device, to: network).transports },
            identity: { devices.identity(of: device, for: $0) }, nextSeed: { devices.nextSeed() })
        return SimulatedDevice.$current.withValue(simulated) {
            Task(executorPreference: loop) { try await program() }
        }
    }

    // MARK: Time

    /// Lets time pass.
    public func run(for duration: Duration) throws(VirtualEventLoop.Livelock) { try loop.run(for: duration) }

    /// Lets time pass until `condition` returns true, for at most `duration`. Returns whether it held.
    public func run(
        until condition: () -> Bool, within duration: Duration = .seconds(60)
    ) throws(VirtualEventLoop.Livelock) -> Bool {
        try loop.run(until: condition, within: duration)
    }

    /// Lets time pass until a program has ended, for at most `duration`, and returns its result. Fails if it has not
    /// ended by then.
    public func result<Result: Sendable>(
        of program: Task<Result, any Error>, within duration: Duration = .seconds(60)
    ) throws -> Result {
        let outcome = Outcome<Result>()
        Task(executorPreference: loop) { await outcome.wait(for: program) }
        guard try run(until: { outcome.result.withLock { $0 != nil } }, within: duration) else {
            throw StillRunning(duration: duration)
        }
        return try outcome.result.withLock { $0 }!.get()
    }

    private final class Outcome<Result: Sendable>: Sendable {
        let result = Mutex<Swift.Result<Result, any Error>?>(nil)

        func wait(for program: Task<Result, any Error>) async {
            let ended = await program.result
            result.withLock { $0 = ended }
        }
    }

    /// A program had not ended when it should have.
    public struct StillRunning: Error, CustomStringConvertible {
        let duration: Duration

        /// A sentence with the time that has passed.
        public var description: String { "the program still runs after \(duration) of virtual time" }
    }

    // MARK: The network

    /// Breaks the links of a device once. Its sessions look for others at once.
    public func cutLinks(of device: String) { devices.hosts(of: device).forEach { $0.cutLinks() } }

    /// Lets nothing through to and from a device, without a word to either side, until ``bringOnline(_:)``.
    public func takeOffline(_ device: String) {
        devices.setOffline(device, true)
        devices.hosts(of: device).forEach { $0.takeOffline() }
    }

    /// Ends what ``takeOffline(_:)`` began.
    public func bringOnline(_ device: String) {
        devices.setOffline(device, false)
        devices.hosts(of: device).forEach { $0.bringOnline() }
    }
}

/// The devices of a simulation, and the hosts of their sessions.
private final class SimulatedDevices: Sendable {
    private struct Device {
        var hosts: [SimulatedHost] = []
        var identitySeeds: [ServiceName: UInt64] = [:]
        var isOffline = false
    }

    private struct State {
        var generator: SeededGenerator
        var devices: [String: Device] = [:]
    }

    private let state: Mutex<State>

    init(seed: UInt64) { state = Mutex(State(generator: SeededGenerator(seed: seed))) }

    func nextSeed() -> UInt64 { state.withLock { $0.generator.next() } }

    func identity(of device: String, for service: ServiceName) -> Identity {
        let seed = state.withLock { state in
            if let seed = state.devices[device]?.identitySeeds[service] { return seed }
            let seed = state.generator.next()
            state.devices[device, default: Device()].identitySeeds[service] = seed
            return seed
        }
        return .ephemeral(seed: seed)
    }

    /// Adds the host of one more session of a device to the network.
    func addHost(of device: String, to network: SimulatedNetwork) -> SimulatedHost {
        let host = network.addHost(at: "\(device)-\(hosts(of: device).count + 1)")
        let isOffline = state.withLock { state in
            state.devices[device, default: Device()].hosts.append(host)
            return state.devices[device]?.isOffline ?? false
        }
        if isOffline { host.takeOffline() }
        return host
    }

    func hosts(of device: String) -> [SimulatedHost] {
        state.withLock { $0.devices[device]?.hosts ?? [] }
    }

    func setOffline(_ device: String, _ isOffline: Bool) {
        state.withLock { $0.devices[device, default: Device()].isOffline = isOffline }
    }
}
