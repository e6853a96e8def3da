import NighCore
import NighUV

/// Looks for devices that have sessions of a service: has bluetoothd inquire now and then, and asks each device that comes into
/// question, one at a time. Confined to its loop; hence `@unchecked Sendable`.
///
/// An inquiry takes the radio for itself. So it lasts ten seconds, then there is a rest for as long as devices are not asked
/// either, and a longer one while pipes are open; and it stops while a connection is being made.
final class PeerSearch: @unchecked Sendable {
    /// What bluetoothd's own inquiry lasts, and a little.
    private static let inquiryTime = Moment.Span.seconds(11)
    /// How much longer the rest is while pipes are open.
    private static let pipesRestFactor: Int64 = 4
    /// How long until an inquiry that was refused is asked for again.
    private static let retry = Moment.Span.seconds(2)
    /// So long is waited for an inquiry to stop, before a connection is made all the same.
    private static let stopTime = Moment.Span.milliseconds(500)

    private let bluez: BlueZ
    private let loop: UVEventLoop
    private let told: ([SightingChange]) -> Void
    private let failed: (NighError) -> Void
    private(set) var survey: DeviceSurvey
    private(set) var service: ServiceName?
    /// How often a search was begun or ended: what one had to tell is nothing to the next.
    private var searchCount = 0
    private var serviceText = ""
    private var isInquiring = false
    private var filterAdapter: String?
    private var cycleTimer: LoopTimer?
    private var lookTimer: LoopTimer?
    private var inquiry: DeviceInquiry?
    /// How many connections are being made; there is no inquiry meanwhile.
    private var dialCount = 0
    /// Those that wait until the inquiry has stopped.
    private var waitingDials: [@Sendable () -> Void] = []
    private var pipeCount = 0
    /// The last refusal that was told, so that it is told once.
    private var toldFault: BusFault?

    /// - Parameters:
    ///   - told: hears what changes, never from inside a call.
    ///   - failed: hears why bluetoothd does not inquire, likewise.
    init(
        _ bluez: BlueZ, interval: Moment.Span, on loop: UVEventLoop,
        told: @escaping ([SightingChange]) -> Void, failed: @escaping (NighError) -> Void
    ) {
        self.bluez = bluez
        self.loop = loop
        self.told = told
        self.failed = failed
        survey = DeviceSurvey(interval: interval)
    }

    /// This side's own PeerID: it is never found.
    func setOwn(_ peer: PeerID) { survey.own = peer }

    /// Looks for sessions of `service`, in place of what was looked for before.
    func begin(_ service: ServiceName) {
        stop()
        self.service = service
        serviceText = BluetoothUUID(of: service).description
        toldFault = nil
        takeIn()
        inquire()
    }

    /// Looks no more; what was told counts as lost.
    func stop() {
        service = nil
        searchCount += 1
        rest()
        unschedule()
        if let lookTimer { loop.cancel(lookTimer) }
        lookTimer = nil
        inquiry?.stop()
        inquiry = nil
        _ = survey.clear()
    }

    // MARK: What changes around

    /// The adapter came, went, or is another.
    func groundChanged() {
        isInquiring = false
        filterAdapter = nil
        inquiry?.stop()
        inquiry = nil
        tell(survey.clear())
        guard service != nil else { return }
        takeIn()
        inquire()
    }

    private func takeIn() {
        guard let adapter = bluez.ground.adapter else { return }
        for device in bluez.objects?.devices(of: adapter) ?? [] { deviceSeen(device) }
    }

    func deviceSeen(_ device: BlueZObjects.Device) {
        guard service != nil, let promise = promise(of: device) else { return }
        tell(survey.seen(device.address, promise, signal: device.signal, now: loop.now))
        look()
    }

    func deviceGone(_ device: BlueZObjects.Device) {
        survey.gone(device.address, now: loop.now)
        look()
    }

    /// What the device lets hope for; nil where it is nothing that could run a program.
    ///
    /// What fits into an answer to an inquiry is little, of a device it has once asked itself bluetoothd never adds to or takes from
    /// what that offers, and paired devices need not answer inquiries at all. So every computer and telephone is asked now and
    /// then, and whoever does not say what it is.
    private func promise(of device: BlueZObjects.Device) -> DeviceSurvey.Promise? {
        if device.services.contains(serviceText) { return .saysSo }
        guard let kind = device.kind, kind != 0 else {
            return device.isPaired || device.signal != nil ? .possible : nil
        }
        return [1, 2].contains(kind >> 8 & 0x1F) ? .possible : nil
    }

    func pipeOpened(to device: BluetoothAddress) {
        pipeCount += 1
        guard service != nil else { return }
        if !isInquiring, dialCount == 0 { schedule(after: restTime) }
        survey.pipeOpened(device, now: loop.now)
        look()
    }

    func pipeEnded(to device: BluetoothAddress) {
        pipeCount -= 1
        guard service != nil else { return }
        // The rest that was chosen for the sake of pipes is over with them: who is gone may soon be back.
        if pipeCount == 0, !isInquiring, dialCount == 0 { schedule(after: Self.retry) }
        survey.pipeEnded(device, now: loop.now)
        look()
    }

    /// What was told of the device turned out to be wrong.
    func doubt(_ device: BluetoothAddress) {
        survey.lookSoon(device, now: loop.now)
        look()
    }

    // MARK: Connections

    /// Makes room on the radio for a connection, then tells `ready`, never from inside this call. Each is followed by `dialEnded`.
    func dialBegins(_ ready: @escaping @Sendable () -> Void) {
        dialCount += 1
        waitingDials.append(ready)
        guard isInquiring, let adapter = bluez.ground.adapter else {
            return loop.execute { [weak self] in self?.letDialsGo() }
        }
        isInquiring = false
        unschedule()
        bluez.call(adapter.path, BlueZObjects.adapterInterface, "StopDiscovery") { [weak self] _ in
            self?.letDialsGo()
        }
        loop.schedule(at: loop.now + Self.stopTime) { [weak self] in self?.letDialsGo() }
    }

    private func letDialsGo() {
        let ready = waitingDials
        waitingDials = []
        for dial in ready { dial() }
    }

    func dialEnded() {
        dialCount -= 1
        guard dialCount == 0, service != nil, cycleTimer == nil else { return }
        schedule(after: Self.retry)
    }

    // MARK: Inquiry

    /// How long nobody is inquired for after an inquiry, or once a pipe is open.
    private var restTime: Moment.Span {
        Moment.Span(nanoseconds: survey.interval.nanoseconds * (pipeCount > 0 ? Self.pipesRestFactor : 1))
    }

    private func unschedule() {
        if let cycleTimer { loop.cancel(cycleTimer) }
        cycleTimer = nil
    }

    private func schedule(after span: Moment.Span) {
        unschedule()
        cycleTimer = loop.schedule(at: loop.now + span) { [weak self] in self?.turn() }
    }

    /// From inquiry to rest, or back.
    private func turn() {
        cycleTimer = nil
        guard service != nil else { return }
        guard isInquiring else { return inquire() }
        rest()
        schedule(after: restTime)
    }

    private func inquire() {
        guard let adapter = bluez.ground.adapter, dialCount == 0, !isInquiring else { return }
        isInquiring = true
        schedule(after: Self.inquiryTime)
        if filterAdapter != adapter.path {
            filterAdapter = adapter.path
            let filter = BusArgument.options([("Transport", .text("bredr"))])
            bluez.call(adapter.path, BlueZObjects.adapterInterface, "SetDiscoveryFilter", [filter])
        }
        bluez.call(adapter.path, BlueZObjects.adapterInterface, "StartDiscovery") { [weak self] result in
            guard case .failure(let fault) = result else { return }
            self?.inquiryRefused(fault)
        }
    }

    private func inquiryRefused(_ fault: BusFault) {
        guard service != nil, isInquiring else { return }
        isInquiring = false
        schedule(after: Self.retry)
        // Somebody else's inquiry serves as well, and an adapter that is just being switched on is ready soon.
        let isPassing = ["org.bluez.Error.InProgress", "org.bluez.Error.NotReady"].contains(fault.name)
        guard !isPassing, fault != toldFault else { return }
        toldFault = fault
        failed(BluetoothFault(fault).error(.browsing))
    }

    private func rest() {
        guard isInquiring, let adapter = bluez.ground.adapter else { return }
        isInquiring = false
        bluez.call(adapter.path, BlueZObjects.adapterInterface, "StopDiscovery")
    }

    // MARK: Asking

    private func look() {
        if let lookTimer { loop.cancel(lookTimer) }
        lookTimer = nil
        guard let service, let adapter = bluez.ground.adapter, inquiry == nil else { return }
        guard let device = survey.takeDue(now: loop.now) else {
            guard survey.nextLook != .never else { return }
            lookTimer = loop.schedule(at: survey.nextLook) { [weak self] in self?.look() }
            return
        }
        inquiry = DeviceInquiry(device, for: service, by: adapter.address, on: loop) { [weak self] result in
            guard let self, self.service == service else { return }
            inquiry = nil
            switch result {
            case .success(let records): tell(survey.answered(device, records, now: loop.now))
            case .failure: tell(survey.failed(device, now: loop.now))
            }
            look()
        }
    }

    private func tell(_ changes: [SightingChange]) {
        guard !changes.isEmpty else { return }
        loop.execute { [weak self, searchCount] in
            guard let self, service != nil, searchCount == self.searchCount else { return }
            told(changes)
        }
    }
}
