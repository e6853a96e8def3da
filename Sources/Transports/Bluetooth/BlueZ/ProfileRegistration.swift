import NighCore
import NighUV

/// Keeps a service record registered with bluetoothd for as long as it is wanted.
///
/// Each registration has a UUID of its own, because bluetoothd takes one profile per UUID. Other devices look for the
/// service class in the record, which any number of programs may share. A changed record is registered anew. The old
/// registration ends only when the new one is complete, so a device that asks in between always finds a record.
///
/// Loop only.
final class ProfileRegistration {
    private static let manager = "org.bluez.ProfileManager1"
    private static let retry = Moment.Span.seconds(3)

    /// Loop only.
    private final class Profile {
        let path: String
        let object: BusObject
        let generation: Int

        init(path: String, object: BusObject, generation: Int) {
            self.path = path
            self.object = object
            self.generation = generation
        }
    }

    private let bluez: BlueZ
    private let loop: UVEventLoop
    private let registered: () -> Void
    private let failed: (NighError) -> Void
    private var wanted: SessionRecord?
    private var current: Profile?
    private var timer: LoopTimer?
    /// The record that is being registered, and with which generation of bluetoothd.
    private var underway: (record: SessionRecord, generation: Int)?
    private var offered: SessionRecord?
    /// Why bluetoothd refused the wanted record last; nil if it did not.
    private(set) var failure: NighError?

    /// Whether others can read the wanted record.
    var isRegistered: Bool { wanted != nil && offered == wanted }

    /// - Parameters:
    ///   - registered: called when a record is registered, the first one or a new one in its place.
    ///   - failed: called with the reason when a registration fails; it is tried again.
    init(
        _ bluez: BlueZ, on loop: UVEventLoop, registered: @escaping () -> Void,
        failed: @escaping (NighError) -> Void
    ) {
        self.bluez = bluez
        self.loop = loop
        self.registered = registered
        self.failed = failed
    }

    /// Registers this record in place of the current one; nil removes the record.
    func setWanted(_ record: SessionRecord?) {
        wanted = record
        if let timer { loop.cancel(timer) }
        timer = nil
        proceed()
    }

    /// Registers again if bluetoothd has restarted, because it has then lost all registrations.
    func availabilityChanged() { proceed() }

    private func proceed() {
        if current?.generation != bluez.generation {
            current = nil
            offered = nil
        }
        guard let wanted else {
            end(current)
            current = nil
            offered = nil
            failure = nil
            return
        }
        guard bluez.availability.adapter != nil, underway?.generation != bluez.generation, offered != wanted
        else {
            return
        }
        register(wanted)
    }

    private func register(_ record: SessionRecord) {
        let generation = bluez.generation
        let uuid = BluetoothUUID.random()
        let path = "/nigh/p\(String(uuid.high, radix: 16))"
        guard let object = bluez.export(at: path, Self.called) else { return }
        let profile = Profile(path: path, object: object, generation: generation)
        underway = (record, generation)
        // Explicitly false: otherwise bluetoothd asks for authorization, and nobody answers.
        let options = BusArgument.options([
            ("Name", .text("Nigh")), ("Role", .text("server")), ("ServiceRecord", .text(record.xml)),
            ("RequireAuthentication", .boolean(false)), ("RequireAuthorization", .boolean(false)),
            ("AutoConnect", .boolean(false)),
        ])
        bluez.call(
            "/org/bluez", Self.manager, "RegisterProfile", [.path(path), .text(uuid.description), options]
        ) { [weak self] result in
            guard let self, generation == bluez.generation else { return }
            underway = nil
            switch result {
            case .success: completed(profile, record)
            case .failure(let fault): refused(fault)
            }
        }
    }

    private func completed(_ profile: Profile, _ record: SessionRecord) {
        end(current)
        current = profile
        offered = record
        failure = nil
        if wanted == record { registered() }
        proceed()
    }

    private func refused(_ fault: BusFault) {
        guard wanted != nil else { return }
        // A change of the adapter has registered earlier than the timer would have.
        if let timer { loop.cancel(timer) }
        timer = loop.schedule(at: loop.now + Self.retry) { [weak self] in
            self?.timer = nil
            self?.proceed()
        }
        let error = BluetoothFault(fault).error(.advertising)
        failure = error
        failed(error)
    }

    private func end(_ profile: Profile?) {
        guard let profile, profile.generation == bluez.generation else { return }
        // The object must exist until bluetoothd has removed the profile.
        bluez.call("/org/bluez", Self.manager, "UnregisterProfile", [.path(profile.path)]) { _ in
            withExtendedLifetime(profile) {}
        }
    }

    /// bluetoothd does not listen for this profile, so the only call it makes is `Release`.
    private static func called(_ request: BusRequest) {
        guard request.interface == "org.bluez.Profile1", request.member == "Release" else { return }
        request.answer()
    }
}
