import NighCore
import NighMemory

/// A transport as the conformance suites need it: how to make transports that can reach each other, and the loops to
/// run them on.
///
/// The *wire* is what connects the transports of a rig: a network, a cable, a hub in memory. Every check asks for a new
/// rig, and so for a new wire. Peers of two rigs that exist at the same time should not find or reach each other; if
/// they can, give the rigs different `seed`s.
public struct TransportRig {
    /// How time passes.
    enum Time {
        /// All transports are on this loop, which the suite runs.
        case virtual(VirtualEventLoop)
        /// The loops run by themselves.
        case real
    }

    /// The name of what is tested, for reports.
    public let name: String
    /// The service that the transports advertise.
    public var service: ServiceName = "conformance"
    /// How long the suite waits for an outcome before it counts the outcome as missing.
    public var timeout = Duration.seconds(10)
    /// How long the suite waits before it concludes that nothing happens.
    public var quietTime = Duration.milliseconds(30)
    /// How many bytes a check writes at once where it needs many. While a reader pauses, a pipe must take less than
    /// twice as many.
    public var bulkByteCount = 32 * 1024 * 1024
    /// How many pipes can be open at once from one transport to another. Some wires carry only one.
    public var pipesAtOnce = 20
    /// Whether two transports can have one pipe each way at the same time, even if `pipesAtOnce` is 1. Such a wire
    /// refuses only a second pipe to the same place.
    public var allowsPipeEachWay = false
    /// How many transports can be on the wire at once. A cable has two ends.
    public var endsAtOnce = 20
    /// The seed for PeerIDs and for the sizes of writes.
    public var seed: UInt64 = 1
    /// An address where nobody listens.
    public var refusedAddress: TransportAddress
    /// An address where nobody answers; nil if the transport has none. The check of dial timeouts is then skipped.
    public var silentAddress: TransportAddress?

    let time: Time
    let makeLoop: () -> any EventLoop
    let stopLoop: (any EventLoop) -> Void
    let makeTransport: (_ end: Int) -> any Transport

    /// Creates a rig in real time for a wire whose ends differ. Each transport has a loop that runs by itself.
    ///
    /// The ends of a cable differ, because there is a device at each. So do those of a radio link, because an adapter
    /// does not hear itself.
    ///
    /// - Parameter makeEnd: makes a transport on the end with the given number. Ends count from 0; each new transport
    ///   gets the first end that no other transport has.
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

    /// Creates a rig in real time. Each transport has a loop that runs by itself; `stopLoop` ends what `makeLoop` made.
    public init(
        _ name: String, refusedAddress: TransportAddress, silentAddress: TransportAddress? = nil,
        makeLoop: @escaping () -> any EventLoop, stopLoop: @escaping (any EventLoop) -> Void,
        makeTransport: @escaping () -> any Transport
    ) {
        self.init(
            name, refusedAddress: refusedAddress, silentAddress: silentAddress, makeLoop: makeLoop,
            stopLoop: stopLoop, makeEnd: { _ in makeTransport() })
    }

    /// Creates a rig in virtual time, with all transports on `loop`, for a wire whose ends differ.
    ///
    /// - Parameter makeEnd: makes a transport on the end with the given number. Ends count from 0; each new transport
    ///   gets the first end that no other transport has.
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

    /// Creates a rig in virtual time, with all transports on `loop`.
    public init(
        _ name: String, on loop: VirtualEventLoop, refusedAddress: TransportAddress,
        silentAddress: TransportAddress? = nil, makeTransport: @escaping () -> any Transport
    ) {
        self.init(
            name, on: loop, refusedAddress: refusedAddress, silentAddress: silentAddress,
            makeEnd: { _ in makeTransport() })
    }

    /// Creates a rig of memory transports on a hub of its own, in virtual time or with a `ThreadEventLoop` for each.
    /// `wrap` changes each transport.
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
