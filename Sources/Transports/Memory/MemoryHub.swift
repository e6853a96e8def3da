import NighCore

/// A network inside one process: the memory transports on one hub see and reach each other, and none on another hub.
///
/// Callable on any thread. Transports on different loops may share a hub.
///
/// `@unchecked Sendable`: the lock guards `state` and what the stations hold.
public final class MemoryHub: @unchecked Sendable {
    /// The hub that is used if none is named.
    public static let shared = MemoryHub(name: "shared")

    private static let hubsByName = NamedHubs()

    /// Returns the hub that everybody in this process gets under `name`. It is made at first use and then kept.
    /// "shared" is ``shared``.
    public static func named(_ name: String) -> MemoryHub {
        guard name != shared.name else { return shared }
        return hubsByName.lock.withLock {
            if let hub = hubsByName.hubs[name] { return hub }
            let hub = MemoryHub(name: name)
            hubsByName.hubs[name] = hub
            return hub
        }
    }

    /// `@unchecked Sendable`: `lock` guards `hubs`.
    private final class NamedHubs: @unchecked Sendable {
        let lock = Lock()
        var hubs: [String: MemoryHub] = [:]
    }

    /// The name of the hub. Only hubs from ``named(_:)`` are shared by their name.
    public let name: String

    private let lock = Lock()
    private var state = State()

    /// Creates a private hub.
    public init() { name = "private" }

    private init(name: String) { self.name = name }

    /// Returns an address at which nobody ever answers a dial, neither yes nor no. Each dial to it runs into its
    /// timeout.
    public func makeSilentAddress() -> TransportAddress {
        lock.withLock {
            let name = state.drawName()
            state.silentNames.insert(name)
            return MemoryTransport.address(name)
        }
    }
}

/// A transport as its hub knows it. The hub's lock guards `mail`, `wakePending` and `isGone`.
final class MemoryStation: @unchecked Sendable {
    enum Mail {
        case found(Sighting)
        case changed(Sighting)
        case lost(TransportAddress)
        case listening
        case addressTaken
        case inbound(MemoryPipe)
        case opened(DialID, MemoryPipe)
        case refused(DialID, NighError)

        var isAboutRoutes: Bool {
            switch self {
            case .found, .changed, .lost: true
            default: false
            }
        }

        var isAboutListening: Bool {
            switch self {
            case .listening, .addressTaken, .inbound: true
            default: false
            }
        }
    }

    let loop: any EventLoop
    let address: TransportAddress
    let highWaterMark: Int
    let lingerTime: Moment.Span
    fileprivate let wake: MemoryWire.Wake
    fileprivate var mail: [Mail] = []
    fileprivate var wakePending = false
    fileprivate var isGone = false

    init(
        loop: any EventLoop, address: TransportAddress, highWaterMark: Int, lingerTime: Moment.Span,
        takeTurn: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        self.address = address
        self.highWaterMark = highWaterMark
        self.lingerTime = lingerTime
        wake = MemoryWire.Wake(loop: loop, run: takeTurn)
    }
}

extension MemoryHub {
    /// The most dialled pipes that may wait for one listener to take them.
    static let backlogLimit = 1024

    struct Listener {
        let station: MemoryStation
        var advertisement: Advertisement

        var sighting: Sighting { Sighting(address: station.address, advertisement: advertisement) }
    }

    struct State {
        /// The listeners in the order in which they began. The first of a name listens; later ones wait for it to stop.
        var listeners: [Listener] = []
        var browsers: [(station: MemoryStation, service: ServiceName)] = []
        var silentNames: Set<String> = []
        var drawnCount = 0
        /// The stations to wake once the lock is released.
        var toWake: [MemoryStation] = []

        mutating func drawName() -> String {
            repeat {
                drawnCount += 1
            } while listeners.contains { $0.station.address.value == "m\(drawnCount)" }
            return "m\(drawnCount)"
        }

        func activeIndex(_ address: TransportAddress) -> Int? {
            listeners.firstIndex { $0.station.address == address }
        }

        mutating func post(_ mail: MemoryStation.Mail, to station: MemoryStation) {
            guard !station.isGone else { return }
            station.mail.append(mail)
            guard !station.wakePending else { return }
            station.wakePending = true
            toWake.append(station)
        }

        mutating func tellBrowsers(
            of service: ServiceName, except own: MemoryStation, _ mail: MemoryStation.Mail
        ) {
            for browser in browsers where browser.service == service && browser.station !== own {
                post(mail, to: browser.station)
            }
        }

        /// Changes what the listener at `index` advertises. Browsers of the old and the new service are notified of
        /// what that means to them.
        mutating func replace(at index: Int, with new: Advertisement) {
            let old = listeners[index]
            listeners[index].advertisement = new
            guard old.advertisement != new, activeIndex(old.station.address) == index else { return }
            if old.advertisement.service == new.service, old.advertisement.peer == new.peer {
                tellBrowsers(of: new.service, except: old.station, .changed(listeners[index].sighting))
            } else {
                tellBrowsers(of: old.advertisement.service, except: old.station, .lost(old.station.address))
                tellBrowsers(of: new.service, except: old.station, .found(listeners[index].sighting))
            }
        }

        /// Stops `station` from listening, or from waiting to listen. The one that has waited longest for the address
        /// listens there now. Returns the pipes that `station` has not taken.
        mutating func stopListening(_ station: MemoryStation) -> [MemoryPipe] {
            guard let index = listeners.firstIndex(where: { $0.station === station }) else { return [] }
            let wasActive = activeIndex(station.address) == index
            let old = listeners.remove(at: index)
            var unseen: [MemoryPipe] = []
            for case .inbound(let pipe) in station.mail { unseen.append(pipe) }
            station.mail.removeAll { $0.isAboutListening }
            guard wasActive else { return unseen }
            tellBrowsers(of: old.advertisement.service, except: station, .lost(station.address))
            if let next = activeIndex(station.address) {
                post(.listening, to: listeners[next].station)
                tellBrowsers(
                    of: listeners[next].advertisement.service, except: listeners[next].station,
                    .found(listeners[next].sighting))
            }
            return unseen
        }
    }

    func drawAddress() -> TransportAddress { MemoryTransport.address(lock.withLock { state.drawName() }) }

    func advertise(_ advertisement: Advertisement, from station: MemoryStation) {
        change { state in
            if let index = state.listeners.firstIndex(where: { $0.station === station }) {
                return state.replace(at: index, with: advertisement)
            }
            let isTaken = state.activeIndex(station.address) != nil
            state.listeners.append(Listener(station: station, advertisement: advertisement))
            guard !isTaken else { return state.post(.addressTaken, to: station) }
            state.post(.listening, to: station)
            state.tellBrowsers(
                of: advertisement.service, except: station,
                .found(Sighting(address: station.address, advertisement: advertisement)))
        }
    }

    /// Changes name and info; service and peer stay.
    func update(_ advertisement: Advertisement, from station: MemoryStation) {
        change { state in
            guard let index = state.listeners.firstIndex(where: { $0.station === station }) else { return }
            var new = state.listeners[index].advertisement
            new.name = advertisement.name
            new.info = advertisement.info
            state.replace(at: index, with: new)
        }
    }

    func stopListening(_ station: MemoryStation) -> [MemoryPipe] { change { $0.stopListening(station) } }

    func isListening(_ station: MemoryStation) -> Bool {
        lock.withLock {
            state.activeIndex(station.address).map { state.listeners[$0].station === station } ?? false
        }
    }

    func browse(_ service: ServiceName, from station: MemoryStation) {
        change { state in
            state.browsers.removeAll { $0.station === station }
            station.mail.removeAll { $0.isAboutRoutes }
            state.browsers.append((station, service))
            for (index, listener) in state.listeners.enumerated()
            where listener.advertisement.service == service && listener.station !== station
                && state.activeIndex(listener.station.address) == index
            {
                state.post(.found(listener.sighting), to: station)
            }
        }
    }

    func stopBrowsing(_ station: MemoryStation) {
        change { state in
            state.browsers.removeAll { $0.station === station }
            station.mail.removeAll { $0.isAboutRoutes }
        }
    }

    /// Posts the answer to the dial as mail. Returns false if no answer will ever come.
    func dial(_ address: TransportAddress, as dial: DialID, from station: MemoryStation) -> Bool {
        change { state in
            if state.silentNames.contains(address.value) { return false }
            guard let index = state.activeIndex(address) else {
                state.post(.refused(dial, Self.refusal(address)), to: station)
                return true
            }
            let listener = state.listeners[index].station
            guard listener.mail.count < Self.backlogLimit else {
                let error = NighError(
                    .connecting, .limit("memory backlog", Self.backlogLimit), transport: address.scheme,
                    advice: "the loop of \(address) is stuck, or dial less at once")
                state.post(.refused(dial, error), to: station)
                return true
            }
            let wire = MemoryWire(
                dialler: station.loop, listener: listener.loop, highWaterMark: station.highWaterMark,
                lingerTime: station.lingerTime)
            let dialled = MemoryPipe(
                wire: wire, isDialler: true, localAddress: station.address, remoteAddress: address)
            let accepted = MemoryPipe(
                wire: wire, isDialler: false, localAddress: address, remoteAddress: station.address)
            state.post(.inbound(accepted), to: listener)
            state.post(.opened(dial, dialled), to: station)
            return true
        }
    }

    /// Removes and returns the oldest mail of `station`. Returns nil if there is none; after that, new mail wakes it
    /// again.
    func takeMail(_ station: MemoryStation) -> MemoryStation.Mail? {
        lock.withLock {
            guard !station.mail.isEmpty else {
                station.wakePending = false
                return nil
            }
            return station.mail.removeFirst()
        }
    }

    /// Forgets `station`, and returns the pipes that it has not taken.
    func leave(_ station: MemoryStation) -> [MemoryPipe] {
        change { state in
            var unseen = state.stopListening(station)
            for case .opened(_, let pipe) in station.mail { unseen.append(pipe) }
            state.browsers.removeAll { $0.station === station }
            station.mail.removeAll()
            station.isGone = true
            return unseen
        }
    }

    /// Changes the state. Then, without the lock, wakes the stations that have mail.
    private func change<Result>(_ body: (inout State) -> Result) -> Result {
        let (result, toWake) = lock.withLock {
            let result = body(&state)
            let toWake = state.toWake
            state.toWake = []
            return (result, toWake)
        }
        for station in toWake { station.wake() }
        return result
    }

    private static func refusal(_ address: TransportAddress) -> NighError {
        NighError(
            .connecting, .refused, transport: address.scheme,
            advice: "nothing is advertised at \(address) on this hub; start the other side first")
    }
}
