import NighCore
import NighMemory

/// What the conformance suite needs to put a transport to the test: how to make transports that can reach each other, and
/// the loops to run them on.
///
/// Every check asks for a new rig, and so for a new network: on two rigs at once nobody should find or reach anybody
/// of the other, or the rigs should differ in `seed`.
public struct TransportRig {
    /// How time passes.
    enum Time {
        /// Everything is on this loop, which the suite runs.
        case virtual(VirtualEventLoop)
        /// Loops run by themselves.
        case real
    }

    /// What is tested, for reports.
    public let name: String
    /// The service that is advertised.
    public var service: ServiceName = "conformance"
    /// For how long an outcome is waited for before it counts as missing.
    public var patience = Duration.seconds(10)
    /// For how long nothing must happen before it counts as nothing.
    public var quietTime = Duration.milliseconds(30)
    /// How much is written at once where it has to be a lot. A reader that pauses may cost at most twice as much.
    public var bulkByteCount = 32 * 1024 * 1024
    /// How many pipes there can be at once from one transport to another. Some wires carry one.
    public var pipesAtOnce = 20
    /// Whether two transports can have a pipe each way at the same time, also where `pipesAtOnce` is 1: the second pipe to the same
    /// place is what such a wire refuses.
    public var allowsPipeEachWay = false
    /// How many transports there can be at once on the wire. A cable has two ends.
    public var endsAtOnce = 20
    /// Decides peers and the cutting of writes.
    public var seed: UInt64 = 1
    /// Where nobody listens.
    public var refusedAddress: TransportAddress
    /// Where nobody answers; nil if the transport has no such place. The check of dial timeouts is skipped then.
    public var silentAddress: TransportAddress?

    let time: Time
    let makeLoop: () -> any EventLoop
    let stopLoop: (any EventLoop) -> Void
    let makeTransport: (_ end: Int) -> any Transport

    /// Transports on loops that run by themselves, one for each transport, where the ends of the wire differ: a cable has a device
    /// at each, and an adapter does not hear itself.
    ///
    /// - Parameter makeEnd: makes a transport on the end of that number. Ends count from 0, and each new transport gets the
    ///   first that no other transport has.
    public init(
        _ name: String, refusedAddress: TransportAddress, silentAddress: TransportAddress? = nil,
        makeLoop: @escaping () -> any EventLoop, stopLoop: @escaping (any EventLoop) -> Void,
        makeEnd: @escaping (Int) -> any Transport
    ) {
        self.name = name
        self.refusedAddress = refusedAddress
        self.silentAddress = silentAddress
        self.makeLoop = makeLoop
        self.stopLoop = stopLoop
        makeTransport = makeEnd
        time = .real
    }

    /// Transports on loops that run by themselves, one for each transport; `stopLoop` ends what `makeLoop` made.
    public init(
        _ name: String, refusedAddress: TransportAddress, silentAddress: TransportAddress? = nil,
        makeLoop: @escaping () -> any EventLoop, stopLoop: @escaping (any EventLoop) -> Void,
        makeTransport: @escaping () -> any Transport
    ) {
        self.init(
            name, refusedAddress: refusedAddress, silentAddress: silentAddress, makeLoop: makeLoop,
            stopLoop: stopLoop, makeEnd: { _ in makeTransport() })
    }

    /// Transports that all are on `loop`, in virtual time, where the ends of the wire differ.
    ///
    /// - Parameter makeEnd: makes a transport on the end of that number. Ends count from 0, and each new transport gets the
    ///   first that no other transport has.
    public init(
        _ name: String, on loop: VirtualEventLoop, refusedAddress: TransportAddress,
        silentAddress: TransportAddress? = nil, makeEnd: @escaping (Int) -> any Transport
    ) {
        self.name = name
        self.refusedAddress = refusedAddress
        self.silentAddress = silentAddress
        makeTransport = makeEnd
        makeLoop = { loop }
        stopLoop = { _ in }
        time = .virtual(loop)
        quietTime = .milliseconds(500)
    }

    /// Transports that all are on `loop`, in virtual time.
    public init(
        _ name: String, on loop: VirtualEventLoop, refusedAddress: TransportAddress,
        silentAddress: TransportAddress? = nil, makeTransport: @escaping () -> any Transport
    ) {
        self.init(
            name, on: loop, refusedAddress: refusedAddress, silentAddress: silentAddress,
            makeEnd: { _ in makeTransport() })
    }

    /// The memory transport on a hub of its own, with its transports changed by `wrap`; in virtual time or on a
    /// `ThreadEventLoop` for each.
    public static func memory(
        isVirtual: Bool, wrap: @escaping (any Transport) -> any Transport = { $0 }
    ) -> TransportRig {
        let hub = MemoryHub()
        let nowhere = TransportAddress(scheme: "memory", value: "nobody")
        let silent = hub.makeSilentAddress()
        guard !isVirtual else {
            return TransportRig(
                "memory in virtual time", on: VirtualEventLoop(), refusedAddress: nowhere,
                silentAddress: silent,
                makeTransport: { wrap(MemoryTransport(hub: hub)) })
        }
        return TransportRig(
            "memory on threads", refusedAddress: nowhere, silentAddress: silent,
            makeLoop: { ThreadEventLoop() },
            stopLoop: { ($0 as? ThreadEventLoop)?.shutdown() },
            makeTransport: { wrap(MemoryTransport(hub: hub)) })
    }
}
