import NighCore
import NighUV

/// Keeps a record in the machine's service discovery, through bluetoothd, for as long as it is wanted.
///
/// Each registration is under a UUID of its own, since bluetoothd takes one profile for each; what others find is the class in the
/// record, and any number of programs may have that in common. A record is changed by a new registration, and the old one ends
/// when the new one stands, so that nobody who asks meanwhile finds nothing. Confined to its loop; hence `@unchecked Sendable`.
final class ProfileRegistration: @unchecked Sendable {
    private static let manager = "org.bluez.ProfileManager1"
    private static let retry = Moment.Span.seconds(3)

    /// `@unchecked Sendable`: confined to the loop.
    private final class Profile: @unchecked Sendable {
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
    /// The record that is being registered, and in which life of bluetoothd.
    private var underway: (record: SessionRecord, generation: Int)?
    private var standing: SessionRecord?
    /// Why what is wanted was refused last; nil where it was not.
    private(set) var failure: NighError?

    /// Whether others can read what is wanted.
    var isStanding: Bool { wanted != nil && standing == wanted }

    /// - Parameters:
    ///   - registered: hears that the record stands, or a new one instead of it.
    ///   - failed: hears why it does not; it is tried again.
    init(
        _ bluez: BlueZ, on loop: UVEventLoop, registered: @escaping () -> Void,
        failed: @escaping (NighError) -> Void
    ) {
        self.bluez = bluez
        self.loop = loop
        self.registered = registered
        self.failed = failed
    }

    /// Has this record there, or none.
    func want(_ record: SessionRecord?) {
        wanted = record
        if let timer { loop.cancel(timer) }
        timer = nil
        proceed()
    }

    /// bluetoothd may be another one now, and know nothing of what was registered.
    func groundChanged() { proceed() }

    private func proceed() {
        if current?.generation != bluez.generation {
            current = nil
            standing = nil
        }
        guard let wanted else {
            end(current)
            current = nil
            standing = nil
            failure = nil
            return
        }
        guard bluez.ground.adapter != nil, underway?.generation != bluez.generation, standing != wanted else {
            return
        }
        register(wanted)
    }

    private func register(_ record: SessionRecord) {
        let generation = bluez.generation
        let uuid = BluetoothUUID.random()
        let path = "/nigh/p\(String(uuid.high, radix: 16))"
        guard let object = bluez.serve(path, Self.called) else { return }
        let profile = Profile(path: path, object: object, generation: generation)
        underway = (record, generation)
        // In words, since an authorization that is not refused in words is asked for, and nobody answers.
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
            case .success: stands(profile, record)
            case .failure(let fault): refused(fault)
            }
        }
    }

    private func stands(_ profile: Profile, _ record: SessionRecord) {
        end(current)
        current = profile
        standing = record
        failure = nil
        if wanted == record { registered() }
        proceed()
    }

    private func refused(_ fault: BusFault) {
        guard wanted != nil else { return }
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
        // The object must be there until bluetoothd has let go of it.
        bluez.call("/org/bluez", Self.manager, "UnregisterProfile", [.path(profile.path)]) { _ in
            withExtendedLifetime(profile) {}
        }
    }

    /// bluetoothd listens for nobody here, so all it has to say is that it goes.
    private static func called(_ request: BusRequest) {
        guard request.interface == "org.bluez.Profile1", request.member == "Release" else { return }
        request.answer()
    }
}
