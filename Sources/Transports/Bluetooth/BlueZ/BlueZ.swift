import CBluetooth
import Glibc
import NighCore
import NighUV

/// Follows bluetoothd: whether it runs, the adapter in use, and the devices that this adapter has seen.
///
/// It follows bluetoothd through stops and starts, and adapters as they are plugged in, switched on and off. It reports
/// changes to its `BlueZEvents`.
///
/// Loop only.
final class BlueZ {
    /// Whether the transport can work.
    enum Availability: Equatable {
        /// Not known yet.
        case unknown
        /// The transport cannot work, because something is missing.
        case missing(BluetoothFault)
        /// The transport works over this adapter, which is present and switched on.
        case adapter(BlueZObjects.Adapter)

        var adapter: BlueZObjects.Adapter? { if case .adapter(let adapter) = self { adapter } else { nil } }
        var fault: BluetoothFault? { if case .missing(let fault) = self { fault } else { nil } }
    }

    private static let service = "org.bluez"
    /// The pause before the next attempt to connect to the bus, or to read the objects.
    private static let busRetry = Moment.Span.seconds(3)

    private let loop: UVEventLoop
    private let wantedAdapter: String?
    private let busAddress: String?
    private weak let events: (any BlueZEvents)?
    private var bus: SystemBus?
    private var retryTimer: LoopTimer?
    private var isStopped = false
    /// Nil while bluetoothd is not running, or has not listed its objects yet.
    private(set) var objects: BlueZObjects?
    private(set) var availability = Availability.unknown
    /// Increases when bluetoothd starts or stops and when the bus is lost. Registrations of an earlier generation are
    /// unknown to bluetoothd.
    private(set) var generation = 0

    /// - Parameters:
    ///   - adapter: the adapter to use, such as `hci1`; nil for the first that is switched on.
    ///   - bus: the bus on which bluetoothd is asked; nil for the system bus, if the kernel has Bluetooth.
    init(on loop: UVEventLoop, adapter: String?, bus address: String? = nil, events: any BlueZEvents) {
        self.loop = loop
        wantedAdapter = adapter
        busAddress = address
        self.events = events
        if address != nil || Self.kernelHasBluetooth {
            connect()
        } else {
            setAvailability(.missing(.noKernelSupport))
        }
    }

    private static var kernelHasBluetooth: Bool {
        let descriptor = socket(
            AF_BLUETOOTH, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), BTPROTO_RFCOMM)
        guard descriptor >= 0 else { return errno != EAFNOSUPPORT && errno != EPROTONOSUPPORT }
        close(descriptor)
        return true
    }

    /// Stops following bluetoothd; no event comes afterwards.
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
        if let retryTimer { loop.cancel(retryTimer) }
        // When a connection to the bus ends, bluetoothd drops the registrations made over it, and may be back before
        // this side is.
        generation += 1
        setAvailability(.missing(.noBus(fault)))
        retryTimer = loop.schedule(at: loop.now + Self.busRetry) { [weak self] in self?.connect() }
    }

    private func listen(on bus: SystemBus) {
        let dbus = "org.freedesktop.DBus"
        bus.subscribe(to: "type='signal',sender='\(dbus)',member='NameOwnerChanged',arg0='\(Self.service)'") {
            [weak self] signal in
            guard signal.values.count == 3, let owner = signal.values[2].text else { return }
            self?.ownerChanged(isThere: !owner.isEmpty)
        }
        bus.subscribe(to: "type='signal',sender='\(Self.service)',interface='\(dbus).ObjectManager'") {
            [weak self] in self?.objectsChanged($0)
        }
        bus.subscribe(
            to:
                "type='signal',sender='\(Self.service)',interface='\(dbus).Properties',path_namespace='/org/bluez'"
        ) {
            [weak self] in self?.propertiesChanged($0)
        }
    }

    private func ownerChanged(isThere: Bool) {
        generation += 1
        objects = nil
        // A new bluetoothd can take over the name without a gap. It knows no registration of the old one, so users of
        // the adapter have to see that the old one is gone.
        if !isThere || availability.adapter != nil { setAvailability(.missing(.noDaemon)) }
        if isThere { readObjects() }
    }

    private func readObjects() {
        if let retryTimer { loop.cancel(retryTimer) }
        retryTimer = nil
        let method = SystemBus.Method(
            destination: Self.service, path: "/", interface: "org.freedesktop.DBus.ObjectManager",
            member: "GetManagedObjects")
        bus?.call(method) { [weak self, generation] result in
            guard let self, generation == self.generation else { return }
            switch result {
            case .success(let values):
                objects = BlueZObjects()
                for (path, interfaces) in values.first?.entries ?? [:] {
                    _ = objects?.added(path, interfaces.entries ?? [:])
                }
                chooseAdapter()
            case .failure(let fault):
                objects = nil
                setAvailability(.missing(BluetoothFault(fault)))
                guard fault.mayPass else { return }
                retryTimer = loop.schedule(at: loop.now + Self.busRetry) { [weak self] in
                    self?.readObjects()
                }
            }
        }
    }

    private func objectsChanged(_ signal: SystemBus.Signal) {
        guard objects != nil, signal.values.count == 2, let path = signal.values[0].text else { return }
        switch signal.member {
        case "InterfacesAdded": report(objects?.added(path, signal.values[1].entries ?? [:]))
        case "InterfacesRemoved":
            report(objects?.removed(path, (signal.values[1].list ?? []).compactMap(\.text)))
        default: break
        }
    }

    private func propertiesChanged(_ signal: SystemBus.Signal) {
        guard objects != nil, signal.values.count == 3, let interface = signal.values[0].text else { return }
        report(
            objects?.changed(
                signal.path, interface, signal.values[1].entries ?? [:],
                without: (signal.values[2].list ?? []).compactMap(\.text)))
    }

    private func report(_ changes: [BlueZObjects.Change]?) {
        for change in changes ?? [] {
            switch change {
            case .adapters: chooseAdapter()
            case .device(let device) where device.adapter == availability.adapter?.path:
                events?.deviceSeen(device)
            case .deviceGone(let device) where device.adapter == availability.adapter?.path:
                events?.deviceGone(device)
            case .device, .deviceGone: break
            }
        }
    }

    // MARK: The adapter

    /// Chooses the adapter that the options name. Without one, it keeps the adapter in use while that is switched on,
    /// and else takes the first that is switched on.
    private func chooseAdapter() {
        guard let objects else { return }
        let all = objects.adaptersInOrder
        if let wantedAdapter {
            guard let adapter = all.first(where: { $0.name == wantedAdapter }) else {
                return setAvailability(.missing(.noSuchAdapter(wantedAdapter, known: all.map(\.name))))
            }
            return setAvailability(adapter.isPowered ? .adapter(adapter) : .missing(Self.offFault(adapter)))
        }
        let current = all.first { $0.isPowered && $0.path == availability.adapter?.path }
        if let adapter = current ?? all.first(where: \.isPowered) {
            return setAvailability(.adapter(adapter))
        }
        setAvailability(.missing(all.first.map(Self.offFault) ?? .noAdapter))
    }

    private static func offFault(_ adapter: BlueZObjects.Adapter) -> BluetoothFault {
        RadioSwitch.isBlocked(adapter.name) ? .blocked(adapter.name) : .switchedOff(adapter.name)
    }

    private func setAvailability(_ new: Availability) {
        guard new != availability else { return }
        let old = availability
        availability = new
        loop.later { [weak self] in
            guard let self, !isStopped else { return }
            events?.availabilityChanged(from: old)
        }
    }

    // MARK: Requests

    /// Calls a method of bluetoothd.
    func call(
        _ path: String, _ interface: String, _ member: String, _ arguments: [BusArgument] = [],
        then answered: @escaping (Result<[BusValue], BusFault>) -> Void = { _ in }
    ) {
        guard let bus else {
            return loop.later { [weak self] in
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
        then answered: @escaping (Result<[BusValue], BusFault>) -> Void = { _ in }
    ) {
        guard let adapter = availability.adapter else { return }
        call(
            adapter.path, "org.freedesktop.DBus.Properties", "Set",
            [.text(BlueZObjects.adapterInterface), .text(property), .variant([value])], then: answered)
    }

    /// Exports an object on the bus; nil while there is no bus.
    func export(at path: String, _ handler: @escaping (BusRequest) -> Void) -> BusObject? {
        bus?.export(at: path, handler)
    }
}

/// Receives changes of bluetoothd and its adapters. All calls come on the loop, never from inside a call to `BlueZ`.
protocol BlueZEvents: AnyObject {
    /// `BlueZ.availability` has changed. If an adapter came into use, `BlueZ.objects` already has the devices it sees.
    func availabilityChanged(from old: BlueZ.Availability)
    /// The adapter in use sees that device, or something about the device has changed.
    func deviceSeen(_ device: BlueZObjects.Device)
    /// bluetoothd has removed that device.
    func deviceGone(_ device: BlueZObjects.Device)
}
