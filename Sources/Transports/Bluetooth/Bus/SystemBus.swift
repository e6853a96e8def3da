import CSystemBus
import Glibc
import NighCore
import NighUV

/// This program's own connection to the D-Bus system bus: sd-bus on the event loop.
///
/// When the connection ends, it calls `lost` once, and the owner makes another connection. It calls no handler from
/// inside a call to it, and none after `close`.
///
/// Loop only.
final class SystemBus {
    /// A method that another process offers.
    struct Method {
        var destination: String
        var path: String
        var interface: String
        var member: String
    }

    /// A signal that another process sent.
    struct Signal {
        var path: String
        var interface: String
        var member: String
        var values: [BusValue]
    }

    /// The most messages that are processed before the loop's other work gets its turn.
    private static let messagesPerTurn = 64

    private let loop: UVEventLoop
    /// The connection; nil once it is closed.
    private(set) var bus: OpaquePointer?
    private var watch: DescriptorWatch?
    private var timer: LoopTimer?
    private let lost: (BusFault) -> Void
    private var isArmedLater = false

    /// A callback. Its slot in sd-bus keeps it alive.
    private final class Handler {
        let call: (OpaquePointer) -> Void
        init(_ call: @escaping (OpaquePointer) -> Void) { self.call = call }
    }

    /// Begins to connect, to the system bus or to the bus at `address`. It throws if there is no bus, and calls `lost`
    /// if the bus then rejects the connection.
    init(on loop: UVEventLoop, at address: String? = nil, lost: @escaping (BusFault) -> Void) throws(BusFault)
    {
        self.loop = loop
        self.lost = lost
        let opened = try Self.open(address)
        bus = opened
        do throws(NighError) {
            watch = try loop.watch(sd_bus_get_fd(opened), for: .readable) { [weak self] _ in self?.process() }
        } catch {
            close()
            throw BusFault(errno: EMFILE)
        }
        armLater()
    }

    private static func open(_ address: String?) throws(BusFault) -> OpaquePointer {
        var opened: OpaquePointer?
        var status = address == nil ? sd_bus_open_system(&opened) : sd_bus_new(&opened)
        guard status >= 0, let opened else { throw BusFault(errno: -status) }
        guard let address else { return opened }
        status = sd_bus_set_address(opened, address)
        if status >= 0 { status = sd_bus_set_bus_client(opened, 1) }
        if status >= 0 { status = sd_bus_start(opened) }
        guard status < 0 else { return opened }
        sd_bus_unref(opened)
        throw BusFault(errno: -status)
    }

    deinit {
        watch = nil
        if let bus { sd_bus_close_unref(bus) }
    }

    /// Ends the connection. No handler is called any more, and calls that wait are dropped.
    func close() {
        guard let bus else { return }
        self.bus = nil
        watch?.cancel()
        watch = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        // Messages that have not been sent yet are dropped, because waiting for them could block the loop.
        sd_bus_close_unref(bus)
    }

    /// Calls a method, and calls `answered` with the result.
    func call(
        _ method: Method, _ arguments: [BusArgument] = [], seconds: UInt64 = 25,
        then answered: @escaping (Result<[BusValue], BusFault>) -> Void = { _ in }
    ) {
        guard let bus else { return }
        var message: OpaquePointer?
        var status = sd_bus_message_new_method_call(
            bus, &message, method.destination, method.path, method.interface, method.member)
        guard status >= 0, let message else { return fail(answered, -status) }
        defer { sd_bus_message_unref(message) }
        // A user who has stopped bluetoothd does not want a game to start it again.
        sd_bus_message_set_auto_start(message, 0)
        for argument in arguments { argument.append(to: message) }
        let handler = Handler { reply in
            if let error = sd_bus_message_get_error(reply) {
                return answered(.failure(BusFault(error.pointee)))
            }
            answered(.success(BusValue.all(in: reply)))
        }
        status = keep(handler) {
            sd_bus_call_async(bus, $0, message, Self.handle, $1, seconds * 1_000_000)
        }
        guard status >= 0 else { return fail(answered, -status) }
        armLater()
    }

    /// Calls `handler` with each signal that matches `rule`, which is a D-Bus match rule.
    func subscribe(to rule: String, _ handler: @escaping (Signal) -> Void) {
        guard let bus else { return }
        let slotHandler = Handler { message in
            handler(
                Signal(
                    path: Self.text(sd_bus_message_get_path(message)),
                    interface: Self.text(sd_bus_message_get_interface(message)),
                    member: Self.text(sd_bus_message_get_member(message)),
                    values: BusValue.all(in: message)))
        }
        _ = keep(slotHandler) { sd_bus_add_match_async(bus, $0, rule, Self.handle, nil, $1) }
        armLater()
    }

    /// Exports an object at `path`. `handler` gets each call to it, which must be answered once.
    func export(at path: String, _ handler: @escaping (BusRequest) -> Void) -> BusObject? {
        guard let bus else { return nil }
        var slot: OpaquePointer?
        let slotHandler = Unmanaged.passRetained(Handler { handler(BusRequest($0)) })
        guard sd_bus_add_object(bus, &slot, path, Self.handleCall, slotHandler.toOpaque()) >= 0, let slot
        else {
            slotHandler.release()
            return nil
        }
        sd_bus_slot_set_destroy_callback(slot, Self.releaseHandler)
        return BusObject(slot)
    }

    private func fail(_ answered: @escaping (Result<[BusValue], BusFault>) -> Void, _ number: Int32) {
        loop.later { [weak self] in
            guard self?.bus != nil else { return }
            answered(.failure(BusFault(errno: number)))
        }
    }

    // MARK: sd-bus

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String {
        pointer.map { String(cString: $0) } ?? ""
    }

    /// Keeps `handler` alive for as long as the bus keeps the registration by `add`.
    private func keep(
        _ handler: Handler,
        _ add: (UnsafeMutablePointer<OpaquePointer?>, UnsafeMutableRawPointer) -> Int32
    ) -> Int32 {
        let kept = Unmanaged.passRetained(handler)
        var slot: OpaquePointer?
        let status = add(&slot, kept.toOpaque())
        guard status >= 0, let slot else {
            kept.release()
            return status
        }
        sd_bus_slot_set_destroy_callback(slot, Self.releaseHandler)
        // From here on the bus owns the slot, until the slot has been used up.
        sd_bus_slot_set_floating(slot, 1)
        sd_bus_slot_unref(slot)
        return status
    }

    private static let releaseHandler: @convention(c) (UnsafeMutableRawPointer?) -> Void = { data in
        if let data { Unmanaged<Handler>.fromOpaque(data).release() }
    }

    private static let handle: sd_bus_message_handler_t = { message, data, _ in
        if let message, let data { Unmanaged<Handler>.fromOpaque(data).takeUnretainedValue().call(message) }
        return 0
    }

    /// Handles calls to an exported object, which answers them now or later.
    private static let handleCall: sd_bus_message_handler_t = { message, data, _ in
        if let message, let data { Unmanaged<Handler>.fromOpaque(data).takeUnretainedValue().call(message) }
        return 1
    }

    private func process() {
        for _ in 0..<Self.messagesPerTurn {
            guard let bus else { return }
            let status = sd_bus_process(bus, nil)
            guard status >= 0 else { return lose(-status) }
            if status == 0 { return arm() }
        }
        armLater()
    }

    private func lose(_ number: Int32) {
        guard bus != nil else { return }
        close()
        lost(BusFault(errno: number))
    }

    /// Processes the messages queued in this turn once, in the next turn of the loop.
    private func armLater() {
        guard !isArmedLater else { return }
        isArmedLater = true
        loop.later { [weak self] in
            self?.isArmedLater = false
            self?.process()
        }
    }

    /// Waits for the events and the deadline that sd-bus wants.
    private func arm() {
        guard let bus else { return }
        let wanted = sd_bus_get_events(bus)
        var events = DescriptorEvents.readable
        if wanted >= 0, wanted & POLLOUT != 0 { events.insert(.writable) }
        watch?.events = events
        if let timer { loop.cancel(timer) }
        timer = nil
        var deadline = UInt64.max
        guard sd_bus_get_timeout(bus, &deadline) >= 0, deadline != .max else { return }
        // The deadline is in microseconds of the loop's own clock.
        let moment = Moment(nanoseconds: Int64(clamping: deadline) &* 1_000)
        timer = loop.schedule(at: moment) { [weak self] in self?.process() }
    }
}

/// An object exported on the bus. It disappears from the bus when this is released.
final class BusObject {
    private let slot: OpaquePointer

    init(_ slot: OpaquePointer) { self.slot = slot }

    deinit { sd_bus_slot_unref(slot) }
}

/// A call to an exported object. It is answered once, now or later. If it is released without an answer, it is refused.
final class BusRequest {
    let interface: String
    let member: String
    let values: [BusValue]
    private let message: OpaquePointer
    private var isAnswered = false

    init(_ message: OpaquePointer) {
        self.message = sd_bus_message_ref(message)
        interface = sd_bus_message_get_interface(message).map { String(cString: $0) } ?? ""
        member = sd_bus_message_get_member(message).map { String(cString: $0) } ?? ""
        values = BusValue.all(in: message)
    }

    deinit {
        refuse("org.freedesktop.DBus.Error.UnknownMethod", "there is no such method")
        sd_bus_message_unref(message)
    }

    /// Answers that the call succeeded.
    func answer(_ arguments: [BusArgument] = []) {
        guard !isAnswered else { return }
        isAnswered = true
        var reply: OpaquePointer?
        guard sd_bus_message_new_method_return(message, &reply) >= 0, let reply else { return }
        for argument in arguments { argument.append(to: reply) }
        sd_bus_send(nil, reply, nil)
        sd_bus_message_unref(reply)
    }

    /// Answers that the call failed with the D-Bus error `name`.
    func refuse(_ name: String, _ text: String) {
        guard !isAnswered else { return }
        isAnswered = true
        var error = sd_bus_error()
        sd_bus_error_set(&error, name, text)
        sd_bus_reply_method_error(message, &error)
        sd_bus_error_free(&error)
    }
}
