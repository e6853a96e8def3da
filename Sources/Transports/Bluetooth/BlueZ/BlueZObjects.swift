/// The adapters and devices that bluetoothd has reported so far. A value; `BlueZ` passes bluetoothd's signals to it.
struct BlueZObjects {
    /// An adapter of this machine.
    struct Adapter: Hashable {
        /// bluetoothd's object path: `/org/bluez/hci0`.
        let path: String
        let address: BluetoothAddress
        var isPowered = false
        var isDiscoverable = false

        /// The kernel's name for it: `hci0`.
        var name: String { String(path.split(separator: "/").last ?? "") }
        /// The number in the name.
        var index: UInt16? { name.hasPrefix("hci") ? UInt16(name.dropFirst(3)) : nil }
    }

    /// Another device, as one adapter has seen it.
    struct Device: Hashable {
        let path: String
        let adapter: String
        let address: BluetoothAddress
        var services: Set<String> = []
        var isPaired = false
        /// Whether keys for it are stored; nil if bluetoothd does not say.
        var isBonded: Bool?
        /// The strength of the received signal in dBm; nil while the device is not seen.
        var signal: Int64?
        /// The class of device that the inquiry reported, as the device itself states it.
        var kind: Int64?
    }

    /// A change to the adapters or devices.
    enum Change: Hashable {
        case adapters
        case device(Device)
        case deviceGone(Device)
    }

    static let adapterInterface = "org.bluez.Adapter1"
    static let deviceInterface = "org.bluez.Device1"

    /// The adapters by path.
    private(set) var adapters: [String: Adapter] = [:]
    private(set) var devices: [String: Device] = [:]

    /// The adapters, ordered by number.
    var adaptersInOrder: [Adapter] {
        adapters.values.sorted { ($0.index ?? .max, $0.path) < ($1.index ?? .max, $1.path) }
    }

    /// The devices that an adapter has seen, ordered by address.
    func devices(of adapter: Adapter) -> [Device] {
        devices.values.filter { $0.adapter == adapter.path }.sorted { $0.address < $1.address }
    }

    /// The device with that address, as that adapter has seen it.
    func device(_ address: BluetoothAddress, of adapter: Adapter) -> Device? {
        devices.values.first { $0.address == address && $0.adapter == adapter.path }
    }

    /// Adds an object with these interfaces and their properties, or replaces it.
    mutating func added(_ path: String, _ interfaces: [String: BusValue]) -> [Change] {
        var changes: [Change] = []
        if let properties = interfaces[Self.adapterInterface]?.entries,
            let address = properties["Address"]?.text.flatMap(BluetoothAddress.init)
        {
            adapters[path] = Adapter(path: path, address: address)
            apply(properties, toAdapter: path)
            changes.append(.adapters)
        }
        if let properties = interfaces[Self.deviceInterface]?.entries,
            let address = properties["Address"]?.text.flatMap(BluetoothAddress.init),
            let adapter = properties["Adapter"]?.text
        {
            devices[path] = Device(path: path, adapter: adapter, address: address)
            apply(properties, without: [], toDevice: path)
            if let device = devices[path] { changes.append(.device(device)) }
        }
        return changes
    }

    /// Removes these interfaces of the object.
    mutating func removed(_ path: String, _ interfaces: [String]) -> [Change] {
        var changes: [Change] = []
        if interfaces.contains(Self.adapterInterface), adapters.removeValue(forKey: path) != nil {
            changes.append(.adapters)
        }
        if interfaces.contains(Self.deviceInterface), let device = devices.removeValue(forKey: path) {
            changes.append(.deviceGone(device))
        }
        return changes
    }

    /// Applies changed properties of one interface of the object. `gone` lists properties whose value is no longer
    /// known.
    mutating func changed(
        _ path: String, _ interface: String, _ properties: [String: BusValue], without gone: [String]
    ) -> [Change] {
        switch interface {
        case Self.adapterInterface where adapters[path] != nil:
            let before = adapters[path]
            apply(properties, toAdapter: path)
            return adapters[path] == before ? [] : [.adapters]
        case Self.deviceInterface where devices[path] != nil:
            apply(properties, without: gone, toDevice: path)
            return devices[path].map { [.device($0)] } ?? []
        default:
            return []
        }
    }

    private mutating func apply(_ properties: [String: BusValue], toAdapter path: String) {
        if let powered = properties["Powered"]?.boolean { adapters[path]?.isPowered = powered }
        if let discoverable = properties["Discoverable"]?.boolean {
            adapters[path]?.isDiscoverable = discoverable
        }
    }

    private mutating func apply(
        _ properties: [String: BusValue], without gone: [String], toDevice path: String
    ) {
        guard var device = devices[path] else { return }
        if let services = properties["UUIDs"]?.list {
            device.services = Set(services.compactMap { $0.text?.lowercased() })
        }
        if let paired = properties["Paired"]?.boolean { device.isPaired = paired }
        if let bonded = properties["Bonded"]?.boolean { device.isBonded = bonded }
        if let kind = properties["Class"]?.integer { device.kind = kind }
        if let signal = properties["RSSI"]?.integer { device.signal = signal }
        if gone.contains("RSSI") { device.signal = nil }
        devices[path] = device
    }
}
