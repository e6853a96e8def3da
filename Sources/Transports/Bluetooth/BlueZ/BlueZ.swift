import CBluetooth
import Glibc
import NighCore
import NighUV

/// bluetoothd, as far as this transport stands on it: whether it is there, the adapter in use, the devices that one has seen.
///
/// It follows bluetoothd through stops and starts, and adapters as they are plugged in, switched on and off. What changes is told
/// by `BlueZEvents`, in a turn of its own. Confined to its loop; hence `@unchecked Sendable`.
final class BlueZ: @unchecked Sendable {
    /// What the transport stands on.
    enum Ground: Equatable {
        /// It is being looked at.
        case unknown
        /// Something is missing.
        case missing(BluetoothFault)
        /// This adapter is there and switched on.
        case adapter(BlueZObjects.Adapter)

        var adapter: BlueZObjects.Adapter? { if case .adapter(let adapter) = self { adapter } else { nil } }
        var fault: BluetoothFault? { if case .missing(let fault) = self { fault } else { nil } }
    }

    private static let service = "org.bluez"
    /// How long until the bus is looked for again.
    private static let busRetry = Moment.Span.seconds(3)

    private let loop: UVEventLoop
    private let wantedAdapter: String?
    private let busAddress: String?
    private weak let events: (any BlueZEvents)?
    private var bus: SystemBus?
    private var retryTimer: LoopTimer?
    private var isStopped = false
    /// Nil while bluetoothd is not there, or has not said what there is.
    private(set) var objects: BlueZObjects?
    private(set) var ground = Ground.unknown
    /// Counts the lives of bluetoothd: what was registered with one is unknown to the next.
    private(set) var generation = 0

    /// - Parameters:
    ///   - adapter: the one to use, such as `hci1`; nil for the first that is switched on.
    ///   - bus: where bluetoothd is asked; nil for the system's bus, in a kernel that has Bluetooth.
    init(on loop: UVEventLoop, adapter: String?, bus address: String? = nil, events: any BlueZEvents) {
        self.loop = loop
        wantedAdapter = adapter
        busAddress = address
        self.events = events
        if address != nil || Self.kernelHasBluetooth {
            connect()
        } else {
            setGround(.missing(.noKernelSupport))
        }
    }

    private static var kernelHasBluetooth: Bool {
        let descriptor = socket(
            AF_BLUETOOTH, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), BTPROTO_RFCOMM)
        guard descriptor >= 0 else { return errno != EAFNOSUPPORT && errno != EPROTONOSUPPORT }
        close(descriptor)
        return true
    }

    /// Ends it; nothing is told any more.
    func stop() {
        isStopped = true
        if let retryTimer { loop.cancel(retryTimer) }
        retryTimer = nil
        bus?.close()
        bus = nil
    }

    // MARK: The bus

    private func connect() {
        retryTimer = nil
        do throws(BusFault) {
            let bus = try SystemBus(on: loop, at: busAddress) { [weak self] in self?.busLost($0) }
            self.bus = bus
            listen(on: bus)
            readObjects()
        } catch {
            busLost(error)
        }
    }

    private func busLost(_ fault: BusFault) {
        guard !isStopped else { return }
        bus = nil
        objects = nil
        // bluetoothd drops what came over a connection when that ends, and may be back before this side is.
        generation += 1
        setGround(.missing(.noBus(fault)))
        retryTimer = loop.schedule(at: loop.now + Self.busRetry) { [weak self] in self?.connect() }
    }

    private func listen(on bus: SystemBus) {
        let dbus = "org.freedesktop.DBus"
        bus.listen("type='signal',sender='\(dbus)',member='NameOwnerChanged',arg0='\(Self.service)'") {
            [weak self] signal in
            guard signal.values.count == 3, let owner = signal.values[2].text else { return }
            self?.ownerChanged(isThere: !owner.isEmpty)
        }
        bus.listen("type='signal',sender='\(Self.service)',interface='\(dbus).ObjectManager'") {
            [weak self] in self?.objectsChanged($0)
        }
        bus.listen(
            "type='signal',sender='\(Self.service)',interface='\(dbus).Properties',path_namespace='/org/bluez'"
        ) {
            [weak self] in self?.propertiesChanged($0)
        }
    }

    private func ownerChanged(isThere: Bool) {
        generation += 1
        guard !isThere else { return readObjects() }
        objects = nil
        setGround(.missing(.noDaemon))
    }

    private func readObjects() {
        let method = SystemBus.Method(
            destination: Self.service, path: "/", interface: "org.freedesktop.DBus.ObjectManager",
            member: "GetManagedObjects")
        bus?.call(method) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let values):
                objects = BlueZObjects()
                for (path, interfaces) in values.first?.entries ?? [:] {
                    _ = objects?.added(path, interfaces.entries ?? [:])
                }
                chooseAdapter()
            case .failure(let fault):
                objects = nil
                setGround(.missing(BluetoothFault(fault)))
            }
        }
    }

    private func objectsChanged(_ signal: SystemBus.Signal) {
        guard objects != nil, signal.values.count == 2, let path = signal.values[0].text else { return }
        switch signal.member {
        case "InterfacesAdded": tell(objects?.added(path, signal.values[1].entries ?? [:]))
        case "InterfacesRemoved":
            tell(objects?.removed(path, (signal.values[1].list ?? []).compactMap(\.text)))
        default: break
        }
    }

    private func propertiesChanged(_ signal: SystemBus.Signal) {
        guard objects != nil, signal.values.count == 3, let interface = signal.values[0].text else { return }
        tell(
            objects?.changed(
                signal.path, interface, signal.values[1].entries ?? [:],
                without: (signal.values[2].list ?? []).compactMap(\.text)))
    }

    private func tell(_ changes: [BlueZObjects.Change]?) {
        for change in changes ?? [] {
            switch change {
            case .adapters: chooseAdapter()
            case .device(let device) where device.adapter == ground.adapter?.path: events?.deviceSeen(device)
            case .deviceGone(let device) where device.adapter == ground.adapter?.path:
                events?.deviceGone(device)
            case .device, .deviceGone: break
            }
        }
    }

    // MARK: The adapter

    /// The adapter that was asked for, or else the one in use as long as it is switched on, or else the first that is.
    private func chooseAdapter() {
        guard let objects else { return }
        let all = objects.adaptersInOrder
        if let wantedAdapter {
            guard let adapter = all.first(where: { $0.name == wantedAdapter }) else {
                return setGround(.missing(.noSuchAdapter(wantedAdapter, known: all.map(\.name))))
            }
            return setGround(adapter.isPowered ? .adapter(adapter) : .missing(Self.offFault(adapter)))
        }
        let current = all.first { $0.isPowered && $0.path == ground.adapter?.path }
        if let adapter = current ?? all.first(where: \.isPowered) { return setGround(.adapter(adapter)) }
        setGround(.missing(all.first.map(Self.offFault) ?? .noAdapter))
    }

    private static func offFault(_ adapter: BlueZObjects.Adapter) -> BluetoothFault {
        RadioSwitch.isBlocked(adapter.name) ? .blocked(adapter.name) : .switchedOff(adapter.name)
    }

    private func setGround(_ new: Ground) {
        guard new != ground else { return }
        let old = ground
        ground = new
        loop.execute { [weak self] in
            guard let self, !isStopped else { return }
            events?.groundChanged(from: old)
        }
    }

    // MARK: What can be asked for

    /// Calls a method of bluetoothd.
    func call(
        _ path: String, _ interface: String, _ member: String, _ arguments: [BusArgument] = [],
        then answered: @escaping @Sendable (Result<[BusValue], BusFault>) -> Void = { _ in }
    ) {
        guard let bus else {
            return loop.execute { [weak self] in
                guard self?.isStopped == false else { return }
                answered(.failure(BusFault(errno: ENOTCONN)))
            }
        }
        let method = SystemBus.Method(
            destination: Self.service, path: path, interface: interface, member: member)
        bus.call(method, arguments, then: answered)
    }

    /// Sets a property of the adapter in use.
    func set(
        _ property: String, _ value: BusArgument,
        then answered: @escaping @Sendable (Result<[BusValue], BusFault>) -> Void = { _ in }
    ) {
        guard let adapter = ground.adapter else { return }
        call(
            adapter.path, "org.freedesktop.DBus.Properties", "Set",
            [.text(BlueZObjects.adapterInterface), .text(property), .variant([value])], then: answered)
    }

    /// Offers an object of ours on the bus.
    func serve(_ path: String, _ called: @escaping (BusRequest) -> Void) -> BusObject? {
        bus?.serve(path, called)
    }
}

/// Who is told what becomes of bluetoothd and its adapters. All on the loop, none from inside a call.
protocol BlueZEvents: AnyObject {
    /// `BlueZ.ground` is another now; what an adapter that came into use sees already stands in `BlueZ.objects`.
    func groundChanged(from old: BlueZ.Ground)
    /// The adapter in use sees that device, or sees it otherwise than before.
    func deviceSeen(_ device: BlueZObjects.Device)
    /// bluetoothd has forgotten that device.
    func deviceGone(_ device: BlueZObjects.Device)
}
