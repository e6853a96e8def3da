import NighCore

/// A network inside one process: the memory transports on one hub see and reach each other, and none on another hub.
///
/// Callable on any thread. Transports on different loops may share a hub.
///
/// The lock of `state` guards the state of the members, too.
public final class MemoryHub: Sendable {
    /// The hub that is used if none is named.
    public static let shared = MemoryHub(name: "shared")

    private static let hubsByName = Guarded<[String: MemoryHub]>([:])

    /// Returns the hub that everybody in this process gets under `name`. It is made at first use and then kept.
    /// "shared" is ``shared``.
    public static func named(_ name: String) -> MemoryHub {
        guard name != shared.name else { return shared }
        return hubsByName.withLock { hubs in
            if let hub = hubs[name] { return hub }
            let hub = MemoryHub(name: name)
            hubs[name] = hub
            return hub
        }
    }

    /// The name of the hub. Only hubs from ``named(_:)`` are shared by their name.
    public let name: String

    private let state = Guarded(State())

    /// Creates a private hub.
    public init() { name = "private" }

    private init(name: String) { self.name = name }

    /// Returns an address at which nobody ever answers a dial, neither yes nor no. Each dial to it runs into its
    /// timeout.
    public func makeSilentAddress() -> TransportAddress {
        state.withLock { state in
            let name = state.drawName()
            state.silentNames.insert(name)
            return MemoryTransport.address(name)
        }
    }
}

/// A transport as its hub knows it. The hub's lock guards `pendingEvents`, `wakePending` and `isGone`.
final class MemoryHubMember {
    enum Event {
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
    fileprivate var pendingEvents: [Event] = []
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
        let member: MemoryHubMember
        var advertisement: Advertisement

        var sighting: Sighting { Sighting(address: member.address, advertisement: advertisement) }
    }

    struct State {
        /// The listeners in the order in which they began. The first of a name listens; later ones wait for it to stop.
        var listeners: [Listener] = []
        var browsers: [(member: MemoryHubMember, service: ServiceName)] = []
        var silentNames: Set<String> = []
        var drawnCount = 0
        /// The members to wake once the lock is released.
        var toWake: [MemoryHubMember] = []

        mutating func drawName() -> String {
            repeat {
                drawnCount += 1
            } while listeners.contains { $0.member.address.value == "m\(drawnCount)" }
            return "m\(drawnCount)"
        }

        func activeIndex(_ address: TransportAddress) -> Int? {
            listeners.firstIndex { $0.member.address == address }
        }

        mutating func post(_ event: MemoryHubMember.Event, to member: MemoryHubMember) {
            guard !member.isGone else { return }
            member.pendingEvents.append(event)
            guard !member.wakePending else { return }
            member.wakePending = true
            toWake.append(member)
        }

        mutating func notifyBrowsers(
            of service: ServiceName, except own: MemoryHubMember, _ event: MemoryHubMember.Event
        ) {
            for browser in browsers where browser.service == service && browser.member !== own {
                post(event, to: browser.member)
            }
        }

        /// Changes the advertisement of the listener at `index`. Notifies browsers of the old and the new service.
        mutating func replace(at index: Int, with new: Advertisement) {
            let old = listeners[index]
            listeners[index].advertisement = new
            guard old.advertisement != new, activeIndex(old.member.address) == index else { return }
            if old.advertisement.service == new.service, old.advertisement.peer == new.peer {
                notifyBrowsers(of: new.service, except: old.member, .changed(listeners[index].sighting))
            } else {
                notifyBrowsers(of: old.advertisement.service, except: old.member, .lost(old.member.address))
                notifyBrowsers(of: new.service, except: old.member, .found(listeners[index].sighting))
            }
        }

        /// Stops `member` from listening, or from waiting to listen. The one that has waited longest for the address
        /// listens there now. Returns the pipes that `member` has not taken.
        mutating func stopListening(_ member: MemoryHubMember) -> [MemoryPipe] {
            guard let index = listeners.firstIndex(where: { $0.member === member }) else { return [] }
            let wasActive = activeIndex(member.address) == index
            let old = listeners.remove(at: index)
            var unseen: [MemoryPipe] = []
            for case .inbound(let pipe) in member.pendingEvents { unseen.append(pipe) }
            member.pendingEvents.removeAll { $0.isAboutListening }
            guard wasActive else { return unseen }
            notifyBrowsers(of: old.advertisement.service, except: member, .lost(member.address))
            if let next = activeIndex(member.address) {
                post(.listening, to: listeners[next].member)
                notifyBrowsers(
                    of: listeners[next].advertisement.service, except: listeners[next].member,
                    .found(listeners[next].sighting))
            }
            return unseen
        }
    }

    func drawAddress() -> TransportAddress { MemoryTransport.address(state.withLock { $0.drawName() }) }

    func advertise(_ advertisement: Advertisement, from member: MemoryHubMember) {
        change { state in
            if let index = state.listeners.firstIndex(where: { $0.member === member }) {
                return state.replace(at: index, with: advertisement)
            }
            let isTaken = state.activeIndex(member.address) != nil
            state.listeners.append(Listener(member: member, advertisement: advertisement))
            guard !isTaken else { return state.post(.addressTaken, to: member) }
            state.post(.listening, to: member)
            state.notifyBrowsers(
                of: advertisement.service, except: member,
                .found(Sighting(address: member.address, advertisement: advertisement)))
        }
    }

    /// Changes name, info and whether the peer is full; service and peer stay.
    func update(_ advertisement: Advertisement, from member: MemoryHubMember) {
        change { state in
            guard let index = state.listeners.firstIndex(where: { $0.member === member }) else { return }
            var new = state.listeners[index].advertisement
            new.name = advertisement.name
            new.info = advertisement.info
            new.isFull = advertisement.isFull
            state.replace(at: index, with: new)
        }
    }

    func stopListening(_ member: MemoryHubMember) -> [MemoryPipe] { change { $0.stopListening(member) } }

    func isListening(_ member: MemoryHubMember) -> Bool {
        state.withLock { state in
            state.activeIndex(member.address).map { state.listeners[$0].member === member } ?? false
        }
    }

    func browse(_ service: ServiceName, from member: MemoryHubMember) {
        change { state in
            state.browsers.removeAll { $0.member === member }
            member.pendingEvents.removeAll { $0.isAboutRoutes }
            state.browsers.append((member, service))
            for (index, listener) in state.listeners.enumerated()
            where listener.advertisement.service == service && listener.member !== member
                && state.activeIndex(listener.member.address) == index
            {
                state.post(.found(listener.sighting), to: member)
            }
        }
    }

    func stopBrowsing(_ member: MemoryHubMember) {
        change { state in
            state.browsers.removeAll { $0.member === member }
            member.pendingEvents.removeAll { $0.isAboutRoutes }
        }
    }

    /// Posts the answer to the dial as an event. Returns false if no answer will ever come.
    func dial(_ address: TransportAddress, as dial: DialID, from member: MemoryHubMember) -> Bool {
        change { state in
            if state.silentNames.contains(address.value) { return false }
            guard let index = state.activeIndex(address) else {
                state.post(.refused(dial, Self.refusal(address)), to: member)
                return true
            }
            let listener = state.listeners[index].member
            guard listener.pendingEvents.count < Self.backlogLimit else {
                let error = NighError(
                    .connecting, .limit("memory backlog", Self.backlogLimit), transport: address.scheme,
                    advice: "is the loop of \(address) blocked? if not, dial fewer at once")
                state.post(.refused(dial, error), to: member)
                return true
            }
            let wire = MemoryWire(
                dialler: member.loop, listener: listener.loop, highWaterMark: member.highWaterMark,
                lingerTime: member.lingerTime)
            let dialled = MemoryPipe(
                wire: wire, isDialler: true, localAddress: member.address, remoteAddress: address)
            let accepted = MemoryPipe(
                wire: wire, isDialler: false, localAddress: address, remoteAddress: member.address)
            state.post(.inbound(accepted), to: listener)
            state.post(.opened(dial, dialled), to: member)
            return true
        }
    }

    /// Removes and returns the oldest event of `member`. Returns nil if there is none; after that, a new event wakes it
    /// again.
    func takeEvent(for member: MemoryHubMember) -> MemoryHubMember.Event? {
        state.withLock { _ in
            guard !member.pendingEvents.isEmpty else {
                member.wakePending = false
                return nil
            }
            return member.pendingEvents.removeFirst()
        }
    }

    /// Forgets `member`, and returns the pipes that it has not taken.
    func leave(_ member: MemoryHubMember) -> [MemoryPipe] {
        change { state in
            var unseen = state.stopListening(member)
            for case .opened(_, let pipe) in member.pendingEvents { unseen.append(pipe) }
            state.browsers.removeAll { $0.member === member }
            member.pendingEvents.removeAll()
            member.isGone = true
            return unseen
        }
    }

    /// Changes the state. Then, without the lock, wakes the members that have events.
    private func change<Result>(_ body: (inout State) -> Result) -> Result {
        let (result, toWake) = state.withLock { state in
            let result = body(&state)
            let toWake = state.toWake
            state.toWake = []
            return (result, toWake)
        }
        for member in toWake { member.wake() }
        return result
    }

    private static func refusal(_ address: TransportAddress) -> NighError {
        NighError(
            .connecting, .refused, transport: address.scheme,
            advice: "nothing is advertised at \(address) on this hub; start the other side first")
    }
}
