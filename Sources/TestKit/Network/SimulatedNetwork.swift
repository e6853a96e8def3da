import NighCore
import NighMemory

/// Hosts on simulated wires, in virtual time: what tests of sessions run on.
///
/// Every session that joins is on all wires, unless told otherwise, and finds those that are on one of them. A test
/// disturbs the wires of each session, and lets time pass. The same test runs the same way every time:
///
///     let network = SimulatedNetwork()
///     let (puma, lynx) = try network.connectedPair()
///     puma.faults.cut()
///     try network.run(for: .seconds(5))
///
/// The network checks its sessions meanwhile. A run throws ``BrokenRule`` if one of them reports an event that must not
/// happen, such as a change of state that is not allowed, or if its state is inconsistent.
///
/// `@unchecked Sendable`: confined to the thread that runs the loop.
public final class SimulatedNetwork: @unchecked Sendable {
    /// A medium that carries pipes: its scheme in addresses, its rank, and what it does to everything on it.
    public struct Wire: Sendable {
        /// The scheme of addresses on this wire.
        public var scheme: String
        /// The cost of the wire: a session prefers the wire with the lowest number. Nil is that of memory.
        public var priority: Int?
        /// The faults of the wire, for each host that joins without a plan of its own.
        public var plan: FaultPlan
        /// How many bytes may wait in a pipe before it counts as backed up.
        public var highWaterMark: Int

        /// Creates a wire.
        public init(
            _ scheme: String = "memory", priority: Int? = nil, plan: FaultPlan = .none,
            highWaterMark: Int = MemoryTransport.defaultHighWaterMark
        ) {
            self.scheme = scheme
            self.priority = priority
            self.plan = plan
            self.highWaterMark = highWaterMark
        }
    }

    /// A session, or its transport, broke a rule that always holds.
    public struct BrokenRule: Error, CustomStringConvertible {
        /// The rules that were broken, one sentence each.
        public let description: String
    }

    /// The loop on which everything runs.
    public let loop: VirtualEventLoop
    /// The wires, in the order in which they were given.
    public let wires: [Wire]
    /// The sessions that have joined and have not crashed, in order.
    public private(set) var sessions: [SessionProbe] = []
    private var count: UInt64 = 0
    private let hubs: [MemoryHub]
    private let seed: UInt64
    private let adjust: (inout SessionConfiguration) -> Void
    private var violations: [String] = []

    /// Creates a network without hosts.
    ///
    /// - Parameters:
    ///   - wires: the media that there are; by default one.
    ///   - seed: decides the keys of the sessions, and everything that is random in them.
    ///   - loop: where everything runs.
    ///   - adjust: changes the configuration of every session that joins.
    public init(
        wires: [Wire] = [Wire()], seed: UInt64 = 0, on loop: VirtualEventLoop = VirtualEventLoop(),
        adjust: @escaping (inout SessionConfiguration) -> Void = { _ in }
    ) {
        self.wires = wires
        self.seed = seed
        self.adjust = adjust
        hubs = wires.map { _ in MemoryHub() }
        self.loop = loop
    }

    deinit { precondition(violations.isEmpty, "no run has thrown: \(violations.joined(separator: "; "))") }

    /// The hub of a wire, for transports that a test makes itself.
    public func hub(of wire: Int = 0) -> MemoryHub { hubs[wire] }

    /// Adds a host, which others find at `address` on each of its wires.
    ///
    /// - Parameters:
    ///   - wires: the numbers of its wires; nil is all of them.
    ///   - plan: returns its faults on the wire with a number; nil is those of the wire.
    public func addHost(
        at address: String, on wires: [Int]? = nil, plan: (Int) -> FaultPlan? = { _ in nil }
    ) -> SimulatedHost {
        SimulatedHost(
            (wires ?? Array(self.wires.indices)).map { number in
                let wire = self.wires[number]
                let memory = MemoryTransport(
                    hub: hubs[number], address: address, highWaterMark: wire.highWaterMark)
                let faulty = FaultyTransport(memory, plan: plan(number) ?? wire.plan)
                let isPlain = wire.scheme == memory.scheme && wire.priority == nil
                return SimulatedHost.Line(
                    transport: isPlain
                        ? faulty
                        : RelabelledTransport(
                            faulty, scheme: wire.scheme,
                            priority: wire.priority ?? memory.capabilities.priority),
                    faults: faulty.control)
            })
    }

    /// Starts a session on a host of its own.
    ///
    /// - Parameters:
    ///   - name: its display name; by default `m1` for the first session, and so on.
    ///   - wires: the numbers of the wires that it is on; nil is all of them.
    ///   - number: decides its key. Two sessions with one number are one peer. By default each has its own.
    ///   - identity: its identity, in place of a key that `number` decides.
    ///   - address: the place at which others find it; by default its name and its number.
    ///   - reading: whether a handler takes its messages, or the test reads them.
    ///   - accepting: whether it accepts every invitation.
    ///   - layers: what rides on it.
    ///   - adjust: changes its configuration.
    ///   - wrap: changes each of its transports.
    @discardableResult
    public func join(
        _ name: String? = nil, on wires: [Int]? = nil, role: SessionRole = .peer, number: UInt64? = nil,
        identity: Identity? = nil, trust: TrustStore = .ephemeral(), at address: String? = nil,
        plan: FaultPlan? = nil, reading: SessionProbe.Reading = .handler, accepting: Bool = true,
        layers: [any SessionLayer] = [], adjust: (inout SessionConfiguration) -> Void = { _ in },
        through wrap: (any Transport) -> any Transport = { $0 }
    ) -> SessionProbe {
        count += 1
        let name = name ?? "m\(count)"
        let host = addHost(at: address ?? "\(name)-\(count)", on: wires) { _ in plan }
        var configuration = SessionConfiguration(
            service: "test", name: DisplayName(fitting: name), role: role)
        configuration.seed = (seed &+ count) &* 7_919
        configuration.layers = layers
        self.adjust(&configuration)
        adjust(&configuration)
        let session = Session(
            configuration, identity: identity ?? .ephemeral(seed: seed &+ (number ?? count)), trust: trust,
            transports: host.transports.map(wrap), loop: loop)
        let probe = SessionProbe(number: Int(count), session: session, wires: host.faults)
        probe.onViolation = { [unowned self] in violations.append($0) }
        sessions.append(probe)
        probe.start(reading: reading, accepting: accepting)
        return probe
    }

    /// Connects two sessions: waits until the first has found the second, and lets it invite.
    public func connect(_ first: SessionProbe, _ second: SessionProbe) throws {
        try run(for: .seconds(1))
        first.invite(second)
        try run(for: .seconds(1))
        guard first.isConnected(to: second) else {
            throw BrokenRule(
                description: "\(first.name) is not connected to \(second.name)"
                    + (first.failure.map { ": \($0)" } ?? ""))
        }
    }

    /// Starts two sessions and connects them; the first has invited.
    public func connectedPair(
        _ names: (String, String) = ("first", "second"), plan: FaultPlan? = nil,
        reading: SessionProbe.Reading = .handler,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: SessionProbe, second: SessionProbe) {
        let first = join(names.0, plan: plan, reading: reading, adjust: adjust)
        let second = join(names.1, plan: plan, reading: reading, adjust: adjust)
        try connect(first, second)
        return (first, second)
    }

    // MARK: Time

    /// Lets time pass, and checks all sessions then.
    public func run(for duration: Duration) throws {
        try loop.run(for: duration)
        try check()
    }

    /// Lets time pass until `condition` returns true, for at most `duration`. Returns whether it held.
    @discardableResult
    public func run(until condition: () -> Bool, within duration: Duration = .seconds(60)) throws -> Bool {
        let holds = try loop.run(until: { condition() || !violations.isEmpty }, within: duration)
        try check()
        return holds
    }

    /// Throws if a session has broken a rule, or if the state of one is inconsistent.
    private func check() throws {
        for probe in sessions where !probe.isClosed {
            violations += probe.session.inconsistencies.map { "session \(probe.number): \($0)" }
        }
        guard !violations.isEmpty else { return }
        defer { violations = [] }
        throw BrokenRule(description: violations.joined(separator: "\n"))
    }

    /// Ends a session without a goodbye, as when its process dies. Its pipes end, too.
    public func crash(_ probe: SessionProbe) {
        sessions.removeAll { $0 === probe }
        probe.session.crash()
    }

    /// Closes all sessions, and waits until each has said goodbye.
    public func close() throws {
        for probe in sessions { probe.session.close {} }
        try run(for: .seconds(20))
    }
}
