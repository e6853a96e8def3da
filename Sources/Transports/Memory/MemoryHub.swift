import NighCore

/// A network inside one process: the memory transports on one hub see and reach each other, those on another do not.
///
/// Callable from anywhere. Transports on different loops may share a hub.
///
/// `@unchecked Sendable`: `state`, and the mail of its stations, are guarded by the lock.
public final class MemoryHub: @unchecked Sendable {
    /// The hub that is used when none is named.
    public static let shared = MemoryHub(name: "shared")

    private static let hubsByName = NamedHubs()

    /// The hub everybody in this process gets under `name`; made at first use and then kept. "shared" is ``shared``.
    public static func named(_ name: String) -> MemoryHub {
        guard name != shared.name else { return shared }
        return hubsByName.lock.withLock {
            if let hub = hubsByName.hubs[name] { return hub }
            let hub = MemoryHub(name: name)
            hubsByName.hubs[name] = hub
            return hub
        }
    }

    /// `hubs` is guarded by `lock`.
    private final class NamedHubs: @unchecked Sendable {
        let lock = Lock()
        var hubs: [String: MemoryHub] = [:]
    }

    /// What it is called; says nothing about who shares it unless it came from ``named(_:)``.
    public let name: String

    private let lock = Lock()
    private var state = State()

    /// A hub of one's own.
    public init() { name = "private" }

    private init(name: String) { self.name = name }

    /// An address at which nobody ever answers a dial, neither yes nor no: it runs into its timeout.
    public func makeSilentAddress() -> TransportAddress {
        lock.withLock {
            let name = state.drawName()
            state.silentNames.insert(name)
            return MemoryTransport.address(name)
        }
    }
}

/// A transport as its hub knows it. `mail` and `wakePending` are guarded by the hub's lock.
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
    /// The most dialled pipes that may wait for one listener to look at them.
    static let backlogLimit = 1024

    struct Listener {
        let station: MemoryStation
        var advertisement: Advertisement

        var sighting: Sighting { Sighting(address: station.address, advertisement: advertisement) }
    }

    struct State {
        /// In the order in which they began; the first of a name listens, later ones wait for it to stop.
        var listeners: [Listener] = []
        var browsers: [(station: MemoryStation, service: ServiceName)] = []
        var silentNames: Set<String> = []
        var drawnCount = 0
        /// Who has to be woken once the lock is let go.
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

        /// The listener at `index` changes what it says; browsers of the old and the new hear what that means to them.
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

        /// `station` stops listening, or waiting to. Who waited longest for the address listens there now. Returns the
        /// pipes it has not looked at.
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

    /// Answers the dial by mail; returns false when nobody ever will.
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

    /// The oldest mail of `station`; nil when there is no more, and then new mail wakes it again.
    func takeMail(_ station: MemoryStation) -> MemoryStation.Mail? {
        lock.withLock {
            guard !station.mail.isEmpty else {
                station.wakePending = false
                return nil
            }
            return station.mail.removeFirst()
        }
    }

    /// Forgets `station`, and returns the pipes it has not looked at.
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

    /// Changes the state, then wakes those who have mail, without the lock.
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
