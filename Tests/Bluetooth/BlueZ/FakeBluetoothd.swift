import CSystemBus
import NighUV
import Testing

@testable import NighBluetooth

/// Imitates what bluetoothd shows on the bus: objects, properties that can be set, and two managers that accept
/// registrations. `@unchecked Sendable`: every method except `start` must be called on the loop.
final class FakeBluetoothd: @unchecked Sendable {
    /// A call that was received.
    struct Call {
        let path: String
        let member: String
        let values: [BusValue]
        fileprivate let sender: String
    }

    private let room: BusRoom
    private let bus: SystemBus
    private var slot: OpaquePointer?
    /// The interface and the properties of each path.
    private var objects: [String: (interface: String, properties: [(String, BusArgument)])] = [:]
    private(set) var calls: [Call] = []
    /// The members that are refused from now on, with the error for each.
    var refused: [String: String] = [:]
    /// The members whose calls are not answered before `release`.
    var held: Set<String> = []
    private var waiting: [BusRequest] = []

    /// Creates one with these objects. It serves when this returns.
    static func start(
        in room: BusRoom, _ prepare: @escaping @Sendable (FakeBluetoothd) -> Void = { _ in }
    ) throws -> FakeBluetoothd {
        let bus = try room.connect()
        let fake = room.call {
            let fake = FakeBluetoothd(in: room, bus)
            prepare(fake)
            bus.call(BusRoom.method("RequestName"), [.text("org.bluez"), .number32(0)]) { _ in
                room.note("bluetoothd is there")
            }
            return fake
        }
        let lives = room.notes.count { $0 == "bluetoothd is there" }
        try #require(room.wait(for: "bluetoothd is there", times: max(lives, 1)))
        return fake
    }

    private init(in room: BusRoom, _ bus: SystemBus) {
        self.room = room
        self.bus = bus
        sd_bus_add_fallback(bus.bus, &slot, "/", Self.called, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Ends the fake, and gives up its name.
    func stop() {
        if let slot { sd_bus_slot_unref(slot) }
        slot = nil
        bus.close()
        // Only now. Otherwise the waiting calls would be refused.
        waiting = []
    }

    // MARK: Objects

    static func path(_ adapter: Int) -> String { "/org/bluez/hci\(adapter)" }

    static func path(_ device: BluetoothAddress, of adapter: Int) -> String {
        path(adapter) + "/dev_" + device.description.replacing(":", with: "_")
    }

    /// Plugs an adapter in. Tests use numbers that no real adapter has, because the kernel is asked for radio switches.
    func plug(_ adapter: Int, isPowered: Bool = true, isDiscoverable: Bool = false) {
        let address = BluetoothAddress(number: 0x00AA_0200_0000 + UInt64(adapter))
        add(
            Self.path(adapter), BlueZObjects.adapterInterface,
            [
                ("Address", .text(address.description)), ("Powered", .boolean(isPowered)),
                ("Discoverable", .boolean(isDiscoverable)),
            ])
    }

    func unplug(_ adapter: Int) { remove(Self.path(adapter)) }

    /// Makes an adapter see a device, a computer.
    func see(_ device: BluetoothAddress, by adapter: Int) {
        add(
            Self.path(device, of: adapter), BlueZObjects.deviceInterface,
            [
                ("Address", .text(device.description)), ("Adapter", .path(Self.path(adapter))),
                ("Class", .number32(0x10C)),
            ])
    }

    func forget(_ device: BluetoothAddress, by adapter: Int) { remove(Self.path(device, of: adapter)) }

    private func add(_ path: String, _ interface: String, _ properties: [(String, BusArgument)]) {
        objects[path] = (interface, properties)
        emit("/", "org.freedesktop.DBus.ObjectManager", "InterfacesAdded") { message in
            BusArgument.path(path).append(to: message)
            Self.inside(message, "a", "{sa{sv}}") { Self.append(interface, properties, to: message) }
        }
    }

    private func remove(_ path: String) {
        guard let interface = objects.removeValue(forKey: path)?.interface else { return }
        emit("/", "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved") { message in
            BusArgument.path(path).append(to: message)
            Self.inside(message, "a", "s") { BusArgument.text(interface).append(to: message) }
        }
    }

    /// Changes the value of a property, or removes it.
    func change(_ path: String, _ property: String, _ value: BusArgument?) {
        guard let object = objects[path] else { return }
        let others = object.properties.filter { $0.0 != property }
        objects[path]?.properties = others + (value.map { [(property, $0)] } ?? [])
        emit(path, "org.freedesktop.DBus.Properties", "PropertiesChanged") { message in
            BusArgument.text(object.interface).append(to: message)
            BusArgument.options(value.map { [(property, $0)] } ?? []).append(to: message)
            Self.inside(message, "a", "s") {
                if value == nil { BusArgument.text(property).append(to: message) }
            }
        }
    }

    func isDiscoverable(_ adapter: Int) -> Bool {
        let value = objects[Self.path(adapter)]?.properties.first { $0.0 == "Discoverable" }?.1
        if case .boolean(true)? = value { return true }
        return false
    }

    // MARK: Calls

    func calls(of member: String) -> [Call] { calls.filter { $0.member == member } }

    /// Answers the calls that wait, and holds no more calls.
    func release() {
        held = []
        for request in waiting { answer(request) }
        waiting = []
    }

    /// Calls a method of the sender of that call, and notes the outcome.
    func callBack(
        _ call: Call, path: String, _ interface: String, _ member: String, _ arguments: [BusArgument] = []
    ) {
        let method = SystemBus.Method(
            destination: call.sender, path: path, interface: interface, member: member)
        bus.call(method, arguments) { [room] result in
            switch result {
            case .success: room.note("\(member) was answered")
            case .failure(let fault): room.note("\(member) was refused: \(fault.name)")
            }
        }
    }

    private func answer(_ request: BusRequest) {
        if let words = refused[request.member] { return request.refuse(words, "the fake says no") }
        request.answer()
        guard request.member == "Set", let property = request.values[1].text,
            let value = request.values[2].boolean
        else { return }
        for path in objects.keys where objects[path]?.interface == request.values[0].text {
            change(path, property, .boolean(value))
        }
    }

    private static let called: sd_bus_message_handler_t = { message, data, _ in
        guard let message, let data else { return 0 }
        Unmanaged<FakeBluetoothd>.fromOpaque(data).takeUnretainedValue().take(message)
        return 1
    }

    private func take(_ message: OpaquePointer) {
        let objects = "GetManagedObjects"
        guard sd_bus_message_is_method_call(message, nil, objects) <= 0 || refused[objects] != nil else {
            return sendObjects(message)
        }
        let sender = sd_bus_message_get_sender(message).map { String(cString: $0) } ?? ""
        let path = sd_bus_message_get_path(message).map { String(cString: $0) } ?? ""
        let request = BusRequest(message)
        calls.append(
            Call(path: path, member: request.member, values: request.values, sender: sender))
        if held.contains(request.member) { waiting.append(request) } else { answer(request) }
        room.note(request.member)
    }

    private func sendObjects(_ message: OpaquePointer) {
        var reply: OpaquePointer?
        sd_bus_message_new_method_return(message, &reply)
        guard let reply else { return }
        Self.inside(reply, "a", "{oa{sa{sv}}}") {
            for (path, object) in objects {
                Self.inside(reply, "e", "oa{sa{sv}}") {
                    BusArgument.path(path).append(to: reply)
                    Self.inside(reply, "a", "{sa{sv}}") {
                        Self.append(object.interface, object.properties, to: reply)
                    }
                }
            }
        }
        sd_bus_send(nil, reply, nil)
        sd_bus_message_unref(reply)
    }

    // MARK: Messages

    private func emit(
        _ path: String, _ interface: String, _ member: String, _ fill: (OpaquePointer) -> Void
    ) {
        var message: OpaquePointer?
        sd_bus_message_new_signal(bus.bus, &message, path, interface, member)
        guard let message else { return }
        fill(message)
        sd_bus_send(nil, message, nil)
        sd_bus_message_unref(message)
    }

    private static func inside(
        _ message: OpaquePointer, _ type: Unicode.Scalar, _ contents: String, _ fill: () -> Void
    ) {
        sd_bus_message_open_container(message, CChar(type.value), contents)
        fill()
        sd_bus_message_close_container(message)
    }

    private static func append(
        _ interface: String, _ properties: [(String, BusArgument)], to message: OpaquePointer
    ) {
        inside(message, "e", "sa{sv}") {
            BusArgument.text(interface).append(to: message)
            BusArgument.options(properties).append(to: message)
        }
    }
}
