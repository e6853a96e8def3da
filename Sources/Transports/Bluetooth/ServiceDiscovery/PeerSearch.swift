import NighCore
import NighUV

/// Looks for devices that have sessions of a service: makes bluetoothd inquire from time to time, and asks each
/// candidate device, one at a time.
///
/// An inquiry occupies the radio. So it ends after 11 seconds, and a rest of one interval follows, or a longer one
/// while pipes are open. An inquiry also stops while a connection is being made.
///
/// Loop only.
final class PeerSearch {
    /// The length of bluetoothd's own inquiry, and a little more.
    private static let inquiryTime = Moment.Span.seconds(11)
    /// How many times longer the rest is while pipes are open.
    private static let pipesRestFactor: Int64 = 4
    /// The pause before an inquiry that was refused is requested again.
    private static let retry = Moment.Span.seconds(2)
    /// How long a connection waits for an inquiry to stop before it is made anyway.
    private static let stopTime = Moment.Span.milliseconds(500)

    private let bluez: BlueZ
    private let loop: UVEventLoop
    private let reportChanges: ([SightingChange]) -> Void
    private let failed: (NighError) -> Void
    private(set) var survey: DeviceSurvey
    private(set) var service: ServiceName?
    /// How many times a search has begun or ended, so that reports of an earlier search are dropped.
    private var searchCount = 0
    private var serviceText = ""
    private var isInquiring = false
    private var filterAdapter: String?
    private var cycleTimer: LoopTimer?
    private var askTimer: LoopTimer?
    private var query: DeviceQuery?
    /// The number of connections that are being made. There is no inquiry meanwhile.
    private var dialCount = 0
    /// The dials that wait until the inquiry has stopped.
    private var waitingDials: [() -> Void] = []
    /// The number of pipes to each device, whether it is searched for or not.
    private var pipes: [BluetoothAddress: Int] = [:]
    /// The last refusal that was reported, so that it is reported once.
    private var reportedFault: BusFault?

    /// - Parameters:
    ///   - reportChanges: called with changes, never from inside a call.
    ///   - failed: called with the reason when bluetoothd does not inquire, never from inside a call.
    init(
        _ bluez: BlueZ, interval: Moment.Span, on loop: UVEventLoop,
        reportChanges: @escaping ([SightingChange]) -> Void, failed: @escaping (NighError) -> Void
    ) {
        self.bluez = bluez
        self.loop = loop
        self.reportChanges = reportChanges
        self.failed = failed
        survey = DeviceSurvey(interval: interval)
    }

    /// Sets this side's own PeerID, which is never found.
    func setOwn(_ peer: PeerID) { survey.own = peer }

    /// Searches for sessions of `service`, in place of any earlier search.
    func begin(_ service: ServiceName) {
        stop()
        self.service = service
        serviceText = BluetoothUUID(of: service).description
        reportedFault = nil
        addDevicesWithPipes()
        addKnownDevices()
        inquire()
    }

    /// Stops searching. All reported peers count as lost, without an event.
    func stop() {
        service = nil
        searchCount += 1
        rest()
        unschedule()
        if let askTimer { loop.cancel(askTimer) }
        askTimer = nil
        query?.stop()
        query = nil
        _ = survey.clear()
    }

    // MARK: Changes nearby

    /// Called when the adapter came, went, or was replaced.
    func availabilityChanged() {
        isInquiring = false
        filterAdapter = nil
        query?.stop()
        query = nil
        report(survey.clear())
        guard service != nil else { return }
        addDevicesWithPipes()
        addKnownDevices()
        inquire()
    }

    /// Tells the survey, which begins anew, which devices are there in any case.
    private func addDevicesWithPipes() {
        for (device, count) in pipes {
            for _ in 0..<count { survey.pipeOpened(device, now: loop.now) }
        }
    }

    private func addKnownDevices() {
        guard let adapter = bluez.availability.adapter else { return }
        for device in bluez.objects?.devices(of: adapter) ?? [] { deviceSeen(device) }
    }

    func deviceSeen(_ device: BlueZObjects.Device) {
        guard service != nil, let likelihood = likelihood(of: device) else { return }
        report(survey.seen(device.address, likelihood, signal: device.signal, now: loop.now))
        askNext()
    }

    func deviceGone(_ device: BlueZObjects.Device) {
        survey.gone(device.address, now: loop.now)
        askNext()
    }

    /// Returns how likely the device has sessions; nil if it cannot run a program.
    ///
    /// An inquiry response has little room. bluetoothd never updates the services of a device that it has once asked
    /// itself. And paired devices need not answer inquiries at all. So every computer and telephone is asked from time
    /// to time, and every device of unknown kind.
    private func likelihood(of device: BlueZObjects.Device) -> DeviceSurvey.Likelihood? {
        if device.services.contains(serviceText) { return .announced }
        guard let kind = device.kind, kind != 0 else {
            return device.isPaired || device.signal != nil ? .possible : nil
        }
        return [1, 2].contains(kind >> 8 & 0x1F) ? .possible : nil
    }

    func pipeOpened(to device: BluetoothAddress) {
        pipes[device, default: 0] += 1
        guard service != nil else { return }
        if !isInquiring, dialCount == 0 { schedule(after: restTime) }
        survey.pipeOpened(device, now: loop.now)
        askNext()
    }

    func pipeEnded(to device: BluetoothAddress) {
        let left = (pipes[device] ?? 1) - 1
        pipes[device] = left > 0 ? left : nil
        guard service != nil else { return }
        // Without pipes the longer rest is over: a peer that is gone may soon be back.
        if pipes.isEmpty, !isInquiring, dialCount == 0 { schedule(after: Self.retry) }
        survey.pipeEnded(device, now: loop.now)
        askNext()
    }

    /// Asks the device again, because its last report turned out to be wrong.
    func askAgain(_ device: BluetoothAddress) {
        survey.askSoon(device, now: loop.now)
        askNext()
    }

    // MARK: Connections

    /// Makes room on the radio for a connection, then calls `ready`, never from inside this call. The caller must call
    /// `dialEnded` once for each call.
    func pauseInquiry(then ready: @escaping () -> Void) {
        dialCount += 1
        waitingDials.append(ready)
        guard isInquiring, let adapter = bluez.availability.adapter else {
            return loop.later { [weak self] in self?.startWaitingDials() }
        }
        isInquiring = false
        unschedule()
        bluez.call(adapter.path, BlueZObjects.adapterInterface, "StopDiscovery") { [weak self] _ in
            self?.startWaitingDials()
        }
        loop.schedule(at: loop.now + Self.stopTime) { [weak self] in self?.startWaitingDials() }
    }

    private func startWaitingDials() {
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

    /// How long no inquiry runs after an inquiry, or after a pipe was opened.
    private var restTime: Moment.Span {
        Moment.Span(survey.interval.duration * (pipes.isEmpty ? 1 : Self.pipesRestFactor))
    }

    private func unschedule() {
        if let cycleTimer { loop.cancel(cycleTimer) }
        cycleTimer = nil
    }

    private func schedule(after span: Moment.Span) {
        unschedule()
        cycleTimer = loop.schedule(at: loop.now + span) { [weak self] in self?.inquireOrRest() }
    }

    /// Switches from inquiry to rest, or back.
    private func inquireOrRest() {
        cycleTimer = nil
        guard service != nil else { return }
        guard isInquiring else { return inquire() }
        rest()
        schedule(after: restTime)
    }

    private func inquire() {
        guard let adapter = bluez.availability.adapter, dialCount == 0, !isInquiring else { return }
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
        // An inquiry of another program serves as well.
        guard !fault.isTemporary, fault != reportedFault else { return }
        reportedFault = fault
        failed(BluetoothFault(fault).error(.browsing))
    }

    private func rest() {
        guard isInquiring, let adapter = bluez.availability.adapter else { return }
        isInquiring = false
        bluez.call(adapter.path, BlueZObjects.adapterInterface, "StopDiscovery")
    }

    // MARK: Asking

    private func askNext() {
        if let askTimer { loop.cancel(askTimer) }
        askTimer = nil
        guard let service, let adapter = bluez.availability.adapter, query == nil else { return }
        guard let device = survey.takeDue(now: loop.now) else {
            guard survey.nextQuery != .never else { return }
            askTimer = loop.schedule(at: survey.nextQuery) { [weak self] in self?.askNext() }
            return
        }
        query = DeviceQuery(device, for: service, by: adapter.address, on: loop) { [weak self] result in
            guard let self, self.service == service else { return }
            query = nil
            switch result {
            case .success(let records): report(survey.answered(device, records, now: loop.now))
            case .failure: report(survey.failed(device, now: loop.now))
            }
            askNext()
        }
    }

    private func report(_ changes: [SightingChange]) {
        guard !changes.isEmpty else { return }
        loop.later { [weak self, searchCount] in
            guard let self, service != nil, searchCount == self.searchCount else { return }
            reportChanges(changes)
        }
    }
}
