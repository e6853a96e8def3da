import Synchronization

/// How peers and invitations reach their session from any thread. It keeps neither the session nor its driver, so a
/// session that nobody else holds ends.
package final class SessionReference: Sendable {
    package let loop: any EventLoop
    /// The mark of the loop's thread, if it has one of its own.
    let threadMark: ThreadMark?
    let directory: PortDirectory
    let portNotifier: PortNotifier
    /// The reports of the session.
    let reports: SessionReports
    /// Bytes of one unreliable message.
    let unreliableLimit: Int
    /// Finds the driver, on the loop. It is a `SessionDriver.DriverReference`, a type that this floor cannot name.
    let driverReference: any AnyObject & Sendable
    /// The layers of the session, which it keeps.
    private let layers: [WeakLayer]
    /// Guards the ports in the handles of peers. One lock for all of them costs a peer no memory.
    let handleLock = Lock()
    private let tokens = Atomic<UInt64>(0)

    init(
        loop: any EventLoop, directory: PortDirectory, portNotifier: PortNotifier,
        reports: SessionReports, unreliableLimit: Int, driverReference: any AnyObject & Sendable,
        layers: [any AnyObject & Sendable] = []
    ) {
        self.loop = loop
        threadMark = (loop as? any ThreadedEventLoop)?.threadMark
        self.directory = directory
        self.portNotifier = portNotifier
        self.reports = reports
        self.unreliableLimit = unreliableLimit
        self.driverReference = driverReference
        self.layers = layers.map { WeakLayer(type: ObjectIdentifier(type(of: $0)), layer: $0) }
    }

    private struct WeakLayer: Sendable {
        let type: ObjectIdentifier
        weak let layer: AnyLayer?
    }

    private typealias AnyLayer = any AnyObject & Sendable

    /// The layer of exactly this type, if the session was made with one and is still there.
    package func layer<Layer: AnyObject & Sendable>(_ type: Layer.Type) -> Layer? {
        let wanted = ObjectIdentifier(type)
        guard let index = layers.firstIndex(where: { $0.type == wanted }), let layer = layers[index].layer
        else { return nil }
        return unsafeDowncast(layer, to: type)
    }

    /// Whether the caller runs on the loop.
    @inline(__always)
    var isOnLoop: Bool { if let threadMark { threadMark.isCurrent } else { loop.isCurrent } }

    /// The peer as it was last reported.
    package func peer(_ id: PeerID) -> Peer {
        reports.peer(id) ?? Peer(unknown: id, advertisement: nil, trust: nil, in: self)
    }

    /// Returns the token of a call that begins.
    func newToken() -> CallToken {
        CallToken(number: tokens.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    /// Puts a port on the loop's list, unless it is there.
    @inline(__always)
    func notifyLoop(of port: PeerPort) {
        if port.markListed() { portNotifier.add(port) }
    }
}
