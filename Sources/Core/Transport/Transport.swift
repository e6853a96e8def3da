/// A way to find routes and to open pipes: TCP found by mDNS, Bluetooth RFCOMM, memory inside one process.
///
/// A transport knows no peers beyond what advertisements say, no frames, no keys and no sessions; it is handed an
/// event loop and does everything there. The session calls it and hears from it; nobody else does.
///
/// ## The contract, for every member
/// - `start` is called first and once, `shutdown` last and once; nothing is called before or after.
/// - The session calls on the loop; the transport calls its `events` on the loop, and **never from inside a call**
///   that the session makes: what a call brings about is told in a later turn (`EventLoop.execute`). `places` alone may be
///   answered at once.
/// - Each event names the transport that tells it, and no other.
/// - No call blocks. What takes time is begun, and its outcome told as an event.
/// - Errors are `NighError`s with stage, cause and advice; `transport` is filled in with the scheme.
/// - After `shutdown` returns, no event comes any more, from the transport or from any pipe of it.
///
/// `Sendable`, because it is made on the program's thread and used on the loop's; since all its state is confined to
/// the loop from `start` on, most are `@unchecked Sendable` for that reason.
///
/// NighTestKit's `checkTransportConformance` holds a transport to all of this, and ``CheckedTransport`` to what of it can be seen
/// while a session uses it.
public protocol Transport: AnyObject, Sendable {
    /// The name in specs and addresses: `tcp`. Constant; 1 to 15 of a–z and 0–9, a letter first. Callable anywhere.
    var scheme: String { get }

    /// What this transport offers and costs, honestly. Constant; callable anywhere.
    var capabilities: TransportCapabilities { get }

    /// Begins: `loop` is where everything happens from now on, `events` who is told. A transport whose ground is
    /// missing (no adapter, no daemon) still starts, tells `transportChanged(.down)` and watches for it to come.
    func start(on loop: any EventLoop, events: any TransportEvents)

    /// Listens for pipes and lets browsers find this session under `advertisement`, until `stopAdvertising`. Failures
    /// are told by `advertisingFailed`. Called again, it replaces what was advertised.
    func advertise(_ advertisement: Advertisement)

    /// Changes name and info of what is advertised, without closing the listener or a pipe. Ignored when nothing is.
    func updateAdvertisement(_ advertisement: Advertisement)

    /// Is found no more and opens no inbound pipes; pipes already open stay.
    func stopAdvertising()

    /// Looks for advertisements of `service`, until `stopBrowsing`: each is told once by `routeFound`, then by `routeChanged`
    /// and `routeLost`. What is advertised already is told as found. Addresses that the transport was given, at which somebody
    /// may answer though nothing is seen there, are told by `addressKnown`. Called again, it replaces the search.
    func browse(_ service: ServiceName)

    /// Stops looking. Routes told so far count as lost from here, without an event each.
    func stopBrowsing()

    /// Tries to open a pipe to `address` and tells `pipeOpened` or `dialFailed`, exactly one of them, with `dial`,
    /// within `timeout` (cause `.timedOut`) and unless it is cancelled before.
    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration)

    /// Gives `dial` up: no event comes for it any more, and a pipe it may have opened is closed. Ignored when unknown.
    func cancelDial(_ dial: DialID)

    /// What a person should know about this transport here and now, in the order it can break.
    func diagnose() -> [Diagnosis]

    /// Finds out which places a dial of `address` would try, each of which can be dialled by itself: the addresses of a name, or of
    /// somebody who was found. Tells `found` once, in a later turn or from inside the call, unless the transport is shut down
    /// before. An address that cannot be one fails.
    func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void)

    /// Closes everything at once: listener, search, dials, pipes. Nothing is called back afterwards.
    func shutdown()
}

extension Transport {
    /// For transports whose addresses are one place each: the address itself.
    public func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) { found(.success([address])) }
}

/// Who a transport tells what happens. The session implements it; all calls come on the loop.
public protocol TransportEvents: AnyObject {
    /// `sighting` is new to this search.
    func routeFound(_ sighting: Sighting, by transport: any Transport)
    /// The sighting of that address now says something else (name, info, quality).
    func routeChanged(_ sighting: Sighting, by transport: any Transport)
    /// Whoever was seen at `address` is no longer.
    func routeLost(_ address: TransportAddress, by transport: any Transport)
    /// Somebody may answer at `address`, which the transport was given; who that is, and whether anybody is there, it does not
    /// know. Told after `browse`, and counts until `stopBrowsing`: until then the session dials it from time to time, and has
    /// a route to whoever says hello there. A second telling changes nothing, but has it dialled at once.
    func addressKnown(_ address: TransportAddress, by transport: any Transport)
    /// A pipe is open: with `dial`, the one dialled under that number; without, one that came in, which none does while nothing
    /// is advertised. Reading begins when the pipe is given its handler.
    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport)
    /// The dial failed for good.
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport)
    /// What is advertised can be seen by others under `name`: another than asked for where somebody else has that already. Not told
    /// while nothing is.
    func advertised(as name: DisplayName, by transport: any Transport)
    /// Advertising could not begin, or ended; the transport goes on trying if that can help.
    func advertisingFailed(_ error: NighError, by transport: any Transport)
    /// Browsing could not begin, or ended; the transport goes on trying if that can help.
    func browsingFailed(_ error: NighError, by transport: any Transport)
    /// This side listens, or listens elsewhere now. Empty when it no longer does, as it must be once nothing is advertised.
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport)
    /// The ground under the transport came or went (an adapter was unplugged, a daemon restarted). Down, none of the routes told
    /// so far counts any more; each of them may be told as found anew.
    func transportChanged(_ condition: TransportCondition, by transport: any Transport)
}

/// Whether a transport has what it stands on.
public enum TransportCondition: Hashable, Sendable {
    /// It can work.
    case up
    /// It cannot, for this reason.
    case down(NighError)
}

/// Names one dial of one transport, so that its outcome can be told. The caller chooses; never used twice.
@frozen
public struct DialID: Hashable, Sendable {
    /// Unique among the dials of a session.
    public let number: UInt64

    /// The dial numbered `number`.
    @inlinable
    public init(number: UInt64) { self.number = number }
}

/// What a session lets others see of it before they connect.
public struct Advertisement: Hashable, Sendable {
    /// The service offered.
    public var service: ServiceName
    /// Who offers it.
    public var peer: PeerID
    /// Under which label.
    public var name: DisplayName
    /// With what else to say.
    public var info: DiscoveryInfo

    /// All that is advertised.
    public init(service: ServiceName, peer: PeerID, name: DisplayName, info: DiscoveryInfo = .none) {
        self.service = service
        self.peer = peer
        self.name = name
        self.info = info
    }
}

/// An advertisement somebody else makes, and where it was seen.
public struct Sighting: Hashable, Sendable {
    /// Where to dial. One sighting an address.
    public var address: TransportAddress
    /// What is advertised there.
    public var advertisement: Advertisement
    /// How good the way looks, 0 (barely) to 1, where the transport can tell (signal strength).
    public var quality: Double?

    /// A sighting at `address`.
    public init(address: TransportAddress, advertisement: Advertisement, quality: Double? = nil) {
        self.address = address
        self.advertisement = advertisement
        self.quality = quality
    }
}

/// What a transport offers and costs. Sizes and times are more than zero.
public struct TransportCapabilities: Hashable, Sendable {
    /// Whether it can carry unreliable messages apart from its byte stream.
    public var datagrams: Bool
    /// The bytes that travel well in one piece.
    public var typicalMTU: Int
    /// What a round trip usually takes.
    public var typicalLatency: Duration
    /// How long opening a pipe usually takes when it works.
    public var expectedConnectTime: Duration
    /// Which is dialled first when a peer has several routes: the smaller.
    public var priority: Int

    /// States all of it.
    public init(
        datagrams: Bool, typicalMTU: Int, typicalLatency: Duration, expectedConnectTime: Duration,
        priority: Int
    ) {
        self.datagrams = datagrams
        self.typicalMTU = typicalMTU
        self.typicalLatency = typicalLatency
        self.expectedConnectTime = expectedConnectTime
        self.priority = priority
    }
}

/// One line of what a transport says about itself: something looked at, how it is, what to do.
public struct Diagnosis: Hashable, Sendable {
    /// How bad it is.
    public enum Verdict: String, Hashable, Sendable {
        /// As it should be.
        case pass
        /// Works, but.
        case warn
        /// Does not work.
        case fail
    }

    /// What was looked at, as programs know it, the same in every version: "adapter". Once in what a transport says.
    public var id: String
    /// What was looked at: "adapter hci0".
    public var subject: String
    /// How it is.
    public var verdict: Verdict
    /// In words: "powered off".
    public var finding: String
    /// The one thing to do about it.
    public var advice: String?
    /// It is being found out, and will be known within seconds: whoever asks again then hears more.
    public var isPending: Bool

    /// One line. Without an `id` the subject stands for it, with a hyphen for each blank.
    public init(
        _ subject: String, _ verdict: Verdict, _ finding: String, advice: String? = nil, id: String? = nil,
        isPending: Bool = false
    ) {
        self.id = id ?? String(subject.map { $0 == " " ? "-" : $0 })
        self.subject = subject
        self.verdict = verdict
        self.finding = finding
        self.advice = advice
        self.isPending = isPending
    }
}
