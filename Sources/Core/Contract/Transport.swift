/// A way to find routes and to open pipes: TCP with mDNS, Bluetooth RFCOMM, memory inside one process.
///
/// A transport knows no peers beyond what advertisements say, and no frames, keys or sessions. It is given an event
/// loop and does everything there. Only the session calls it, and only the session receives its events.
///
/// ## The contract, for every member
/// - `start` is called first and once, `shutdown` last and once. Nothing is called before, except `prepare`, and
///   nothing after.
/// - The session calls on the loop. The transport calls its `events` on the loop too, and **never from inside a call**
///   that the session makes: it reports the result of a call in a later turn (`EventLoop.later`). Only `places` may be
///   answered at once.
/// - Each event names the transport that reports it, and no other.
/// - No call blocks. A long operation is only begun, and its outcome is reported as an event.
/// - Errors are `NighError`s with stage, cause and advice; `transport` is set to the scheme.
/// - After `shutdown` returns, no event comes any more, neither from the transport nor from any pipe of it.
///
/// A transport is `Sendable`, because it is made on the program's thread and used on the loop's. From `start` on all
/// its state is confined to the loop, so most transports are `@unchecked Sendable`. The objects behind it need not be:
/// the work that `EventLoop.later` and `EventLoop.schedule` take may refer to them.
///
/// NighTestKit's `checkTransportConformance` tests a transport against all of this. ``CheckedTransport`` checks the
/// part that can be seen while a session uses the transport.
public protocol Transport: AnyObject, Sendable {
    /// The name in specs and addresses, such as `tcp`: 1 to 15 of a–z and 0–9, beginning with a letter. Constant; may
    /// be read on any thread.
    var scheme: String { get }

    /// The properties and costs of this transport, stated honestly. Constant; may be read on any thread.
    var capabilities: TransportCapabilities { get }

    /// Names the peer that the transport works for, and the identity that this peer acts for. A transport needs both if
    /// others find this side by them. Called once at most, before `start`, on any thread. Without an implementation
    /// nothing happens.
    func prepare(for peer: PeerID, of identity: PeerID)

    /// Starts the transport. From now on everything happens on `loop`, and `events` receives the reports. A transport
    /// that lacks something it needs (an adapter, a daemon) still starts, reports `transportChanged(.down)` and watches
    /// for it to appear.
    func start(on loop: any EventLoop, events: any TransportEvents)

    /// Listens for pipes and lets browsers find this session under `advertisement`, until `stopAdvertising`. Failures
    /// are reported by `advertisingFailed`. Called again, it replaces the advertisement.
    func advertise(_ advertisement: Advertisement)

    /// Changes name, info and `isFull` of the advertisement, without closing the listener or a pipe. Ignored if nothing
    /// is advertised.
    func updateAdvertisement(_ advertisement: Advertisement)

    /// Stops advertising: this session is no longer found, and no inbound pipes open. Pipes that are already open stay.
    func stopAdvertising()

    /// Looks for advertisements of `service`, until `stopBrowsing`. Each is reported once by `routeFound`, then by
    /// `routeChanged` and `routeLost`. One that exists already is reported as found. Addresses that the transport was
    /// given, at which a peer may answer although none is seen there, are reported by `addressKnown`. Called again, it
    /// replaces the search.
    func browse(_ service: ServiceName)

    /// Stops browsing. The routes reported so far count as lost from now on, without an event for each.
    func stopBrowsing()

    /// Tries to open a pipe to `address`. Reports exactly one of `pipeOpened` and `dialFailed`, with `dial` and within
    /// `timeout`. If the time runs out, the cause is `.timedOut`. Reports nothing if the dial is cancelled before.
    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration)

    /// Cancels `dial`: no event comes for it any more, and a pipe that it may have opened is closed. Ignored if it is
    /// unknown.
    func cancelDial(_ dial: DialID)

    /// Returns a diagnosis of this transport here and now, for people, in the order in which it can break.
    func diagnose() -> [Diagnosis]

    /// Finds the places that a dial of `address` would try: the addresses of a name, or of a peer that was found. Each
    /// can be dialled by itself. Calls `found` once, in a later turn or from inside the call, unless the transport is
    /// shut down before. Fails if `address` is not a possible address.
    func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void)

    /// Returns whether to dial `address`, which another peer has given as the address of a third one. Anything may be
    /// there, so the answer is no for an address that the other peer could not reach itself: this machine alone, or
    /// many at once. Without an implementation the answer is yes.
    ///
    /// - Parameter introducer: the address of the peer that has given `address`, which is the other end of the pipe to
    ///     that peer; nil if the pipe has no address.
    func mayDial(_ address: TransportAddress, introducedBy introducer: TransportAddress?) -> Bool

    /// Closes everything at once: listener, search, dials, pipes. Calls nothing back afterwards.
    func shutdown()
}

extension Transport {
    /// Does nothing, for transports that find peers by other means.
    public func prepare(for peer: PeerID, of identity: PeerID) {}

    /// Returns the address itself, for transports whose addresses are one place each.
    public func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) { found(.success([address])) }

    /// Returns true, for transports whose addresses are the same place for everybody.
    public func mayDial(_ address: TransportAddress, introducedBy introducer: TransportAddress?) -> Bool {
        true
    }
}

/// Receives the events of a transport. The session implements it; all calls come on the loop.
public protocol TransportEvents: AnyObject {
    /// Reports a sighting that is new to this search.
    func routeFound(_ sighting: Sighting, by transport: any Transport)
    /// Reports that the sighting of an address has changed (name, info, `isFull`, quality).
    func routeChanged(_ sighting: Sighting, by transport: any Transport)
    /// Reports that the peer seen at `address` is no longer seen.
    func routeLost(_ address: TransportAddress, by transport: any Transport)
    /// Reports an address that the transport was given, at which a peer may answer. The transport does not know which
    /// peer that is, or whether there is one. The address is reported after `browse` and counts until `stopBrowsing`.
    /// Until then the session dials it from time to time, and has a route to the peer that says hello there. A second
    /// report changes nothing, except that the session dials the address at once.
    func addressKnown(_ address: TransportAddress, by transport: any Transport)
    /// Reports an open pipe. With `dial`, it is the pipe dialled under that ID. Without, it is inbound; none comes
    /// while nothing is advertised. Reading begins when the pipe is given its handler.
    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport)
    /// Reports that a dial has failed for good.
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport)
    /// Reports that others can see the advertisement under `name`. It is not the requested name if another session
    /// already has that. Not reported while nothing is advertised.
    func advertised(as name: DisplayName, by transport: any Transport)
    /// Reports that advertising could not begin, or ended. The transport goes on trying if that can help.
    func advertisingFailed(_ error: NighError, by transport: any Transport)
    /// Reports that browsing could not begin, or ended. The transport goes on trying if that can help.
    func browsingFailed(_ error: NighError, by transport: any Transport)
    /// Reports the addresses at which this side listens now. Empty when it no longer listens, as it must be once
    /// nothing is advertised.
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport)
    /// Reports that something the transport needs came or went: an adapter was unplugged, a daemon restarted. While it
    /// is down, none of the routes reported so far counts any more; each of them may be reported as found again.
    func transportChanged(_ condition: TransportCondition, by transport: any Transport)
}

/// Whether a transport has everything that it needs.
public enum TransportCondition: Hashable, Sendable {
    /// The transport can work.
    case up
    /// The transport cannot work, for this reason.
    case down(NighError)
}

/// Identifies one dial of one transport, so that its outcome can be reported. The caller chooses it and never uses it
/// twice.
@frozen
public struct DialID: Hashable, Sendable {
    /// The number, unique among the dials of a session.
    public let number: UInt64

    /// Creates the ID of the dial numbered `number`.
    @inlinable
    public init(number: UInt64) { self.number = number }
}

/// A session as others see it before they connect.
public struct Advertisement: Hashable, Sendable {
    /// The service that is offered.
    public var service: ServiceName
    /// The peer that offers it.
    public var peer: PeerID
    /// The display name of that peer.
    public var name: DisplayName
    /// The discovery info of that peer.
    public var info: DiscoveryInfo
    /// Whether that peer accepts no more peers at present.
    public var isFull: Bool
    /// The identity that the peer acts for, if it says that it acts for another than its own key. Anybody can announce
    /// this; a session believes it only when the peer has proven it.
    public var identity: PeerID?

    /// Creates an advertisement.
    public init(
        service: ServiceName, peer: PeerID, name: DisplayName, info: DiscoveryInfo = .none,
        isFull: Bool = false, identity: PeerID? = nil
    ) {
        self.service = service
        self.peer = peer
        self.name = name
        self.info = info
        self.isFull = isFull
        self.identity = identity
    }

    /// The PeerID that people know: the announced identity, or that of the peer's own key.
    package var knownID: PeerID { identity ?? peer }

    /// The name for people. If several sessions act for one identity, each announces a number behind it.
    package var shownName: DisplayName { identity == nil ? name : name.withoutNumber }
}

/// An advertisement of another peer, and the address at which it was seen.
public struct Sighting: Hashable, Sendable {
    /// The address to dial. There is one sighting per address.
    public var address: TransportAddress
    /// The advertisement at that address.
    public var advertisement: Advertisement
    /// How good the route looks, from 0 (barely usable) to 1, if the transport can tell (signal strength).
    public var quality: Double?

    /// Creates a sighting at `address`.
    public init(address: TransportAddress, advertisement: Advertisement, quality: Double? = nil) {
        self.address = address
        self.advertisement = advertisement
        self.quality = quality
    }
}

/// The properties and costs of a transport. Sizes and times are greater than zero.
public struct TransportCapabilities: Hashable, Sendable {
    /// Whether the transport can carry unreliable messages apart from its byte stream.
    public var datagrams: Bool
    /// How many bytes travel well in one piece.
    public var typicalMTU: Int
    /// How long a round trip usually takes.
    public var typicalLatency: Duration
    /// How long opening a pipe usually takes when it works.
    public var expectedConnectTime: Duration
    /// The order in which the routes of a peer are dialled: the smaller priority first.
    public var priority: Int
    /// Whether people know addresses of the transport, so that errors offer it.
    package var isForPeople = true
    /// How long a conversation should wait for another link after one of this transport has broken, if it takes longer
    /// than others to come back. Programs that have chosen a `SessionTimings.grace` keep theirs.
    package var suggestedGrace: Duration?

    /// Creates capabilities with all values given.
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

/// One line of a transport's diagnosis of itself: the subject, the result, and the advice.
public struct Diagnosis: Hashable, Sendable {
    /// How good or bad the result is.
    public enum Verdict: String, Hashable, Sendable {
        /// Everything is as it should be.
        case pass
        /// It works, but with a reservation.
        case warn
        /// It does not work.
        case fail
    }

    /// The ID of the subject, for programs, the same in every version: "adapter". No two lines of a transport share
    /// one.
    public var id: String
    /// The subject of the check: "adapter hci0".
    public var subject: String
    /// How good or bad the result is.
    public var verdict: Verdict
    /// The result in words: "powered off".
    public var finding: String
    /// The one thing to do about it.
    public var advice: String?
    /// Whether the result is still being found out. It will be known within seconds, so a caller that asks again gets
    /// more.
    public var isPending: Bool

    /// Creates one line. Without an `id`, the ID is the subject with a hyphen for each blank.
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
